#pragma once

// The coordinator: reports of nodes in, the desired state out. Its host hands in what nodes send
// and ticks it about twenty times a second: a tick weighs all that has come in, and what changes is
// published as a state of a higher version.
//
// A plan's inputs are fixed for all nodes at once. When they no longer fit (a stream is complete or
// has ended, a member has come or gone, ...) the coordinator asks every member what it holds, waits
// for the answers or two seconds, and publishes base, cuts and inputs together:
//
//   steady ──inputs changed──► collecting ──all answered, or 2 s──► steady, with a new plan
//
// A value without threads or clock: the same calls give the same states.

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "capacity/capacity_split.h"
#include "coordination/dataset_spec.h"
#include "coordination/plan_base.h"
#include "coordination/revisions.h"
#include "coordination/state.h"
#include "coordination/status.h"
#include "coordinator/manifest_placement.h"
#include "coordinator/membership.h"
#include "coordinator/pass_history.h"
#include "coordinator/rate_book.h"
#include "coordinator/savings_collector.h"
#include "coordinator/stream_registry.h"

namespace optcache::coordination {

struct CoordinatorOptions {
  std::uint32_t term = 0;
  // It takes the place of another, of which only the nodes know: until two report intervals after
  // the first report it publishes nothing and admits only nodes that say which member they are.
  bool successor = false;
  Duration report_interval = std::chrono::seconds(1);
  Duration member_silence = std::chrono::seconds(30);  // then it has gone
  Duration rank_silence = std::chrono::seconds(30);    // then it is lost
  Duration stream_silence = std::chrono::minutes(10);  // then it has ended
  // Streams that start together are planned together: alone, the first would drop what the others
  // are about to read. Until then they lose nothing.
  Duration stream_gathering = std::chrono::milliseconds(200);
  Duration inventory_wait = std::chrono::seconds(2);
  Duration drift_interval = std::chrono::seconds(2);  // between plans that only drift asks for
};

class Coordinator {
 public:
  Coordinator() : Coordinator(CoordinatorOptions{}) {}
  explicit Coordinator(const CoordinatorOptions& options);

  // Takes the place of all datasets before. A manifest that a spec replaces is retiring: streams
  // that began with it go on with it, in their share of what the Dataset was granted, and when the
  // last of them has ended it goes. At most kMaxRetiringOfDataset are kept, the latest.
  void SetDatasets(std::vector<DatasetSpec> specs, MonotonicTime now);

  // kConflict: the node has been started again since, or knows a later term: this coordinator has
  // been replaced. kResourceExhausted: too many members. kUnavailable: a successor that still
  // learns, report again. A report that is refused changes nothing. Streams that do not fit what is
  // known are left out and named in the status.
  Result<ReportAnswer> OnReport(const Report& report, MonotonicTime now);

  // kNotFound: from no member. kConflict: not the request that is open. kInvalidArgument: names
  // samples that the dataset does not have.
  Status OnInventory(const Inventory& inventory);

  // The bytes of a rank's list that `node` has named. kConflict: none of its ranks names it any
  // more; kInvalidArgument: they are no such list; kResourceExhausted: there are too many lists.
  Status OnTrace(std::string_view node, std::string_view digest, std::string bytes);

  void OnTick(MonotonicTime now);
  // Before the tick that ends a time in which nobody ticked or reported, as the host stood still:
  // it counts as nobody's silence.
  void OnPause(Duration pause);

  // Of version 0.0 while a successor learns.
  const DesiredState& state() const { return state_; }
  bool learning() const { return learning_; }
  // Has every rank that reads had time to be heard? Not soon after a successor has begun.
  bool KnowsStreams(MonotonicTime now) const {
    return !options_.successor || (first_report_ && now - *first_report_ > options_.rank_silence);
  }

  // Is that the manifest of a dataset, or one that retires?
  bool Names(std::string_view manifest_digest) const;
  // The bytes named by a base digest of this or the previous plan of a dataset, nullptr: not known.
  std::shared_ptr<const std::string> BaseBytes(std::string_view digest) const;

  // The joined lists of a pass that a state names, nullptr: not known.
  std::shared_ptr<const std::string> TraceBytes(std::string_view digest) const;

  ClusterStatus Snapshot(MonotonicTime now) const;

  // What nodes have said since the last call that the cache has saved.
  SavingsByDataset CollectSavings() { return savings_.Collect(); }

 private:
  // A Dataset with one of its manifests.
  struct DatasetId {
    std::string name;
    std::string manifest_digest;
    friend auto operator<=>(const DatasetId&, const DatasetId&) = default;
  };
  struct Collection {
    RequestNumber request = 0;
    MonotonicTime deadline;
    std::map<MemberId, std::vector<SampleId>> answers;
  };
  struct NamedBytes {
    std::string digest;
    std::shared_ptr<const std::string> bytes;
  };
  struct DatasetEntry {
    DatasetSpec spec;
    // Since when its Dataset has another manifest; nullopt: this is the present one.
    std::optional<MonotonicTime> retiring_since;
    std::vector<MemberCapacity> granted;     // by the present members, to all manifests together
    std::vector<MemberCapacity> capacities;  // of that: due to this one now
    StreamRegistry registry;

    // The plan in force: its inputs as they were fixed.
    Version planned;
    MonotonicTime planned_at;
    Assignment planned_assignment;
    std::vector<TrialState> planned_trials;
    std::vector<MemberCapacity> planned_capacities;
    std::vector<StreamState> planned_streams;
    std::vector<double> planned_progress;  // of planned_streams, at planned_at
    std::string base_digest;
    std::vector<NamedBytes> bases;  // this one's and the one's before
    std::optional<Collection> collection;
    Savings saved;  // since this has been the present manifest
    PassHistory passes;
    ManifestPlacement placement;
    std::optional<MonotonicTime> store_silent_at;  // the last that was heard of a silent store

    ByteCount MeanSampleBytes() const { return spec.samples == 0 ? 0 : spec.bytes / spec.samples; }
  };
  using Datasets = std::map<DatasetId, DatasetEntry>;
  // What a plan made now would be made of; cuts are not set.
  struct PlanInputs {
    Assignment assignment;
    std::vector<TrialState> trials;
    std::vector<MemberCapacity> capacities;
    std::vector<StreamState> streams;
  };

  void Learn(MonotonicTime now);
  void TakeNumbers(const Report& report, MemberId member, MonotonicTime now);
  DatasetEntry* TakeNumbers(const DatasetReport& report, MemberId member, MonotonicTime now);
  bool StaysListed(const Member& member, std::string_view dataset) const;
  void AddSavings(const SavingsBatch& batch);
  std::vector<DatasetShare> ShareRates(const Report& report, MemberId member, MonotonicTime now);
  void ForgetMember(MemberId id);

  std::vector<DatasetEntry*> ManifestsOf(std::string_view dataset);
  DatasetEntry* Present(std::string_view dataset);
  DatasetEntry* Adopt(const Report& from, const StreamReport& stream, MonotonicTime now);
  void EndSurplus(const std::string& dataset);
  void EndRetiring(MonotonicTime now);

  void TakeStream(const Report& from, const StreamReport& report, MemberId member,
                  MonotonicTime now);
  bool Supersede(DatasetEntry& dataset, const StreamReport& report);
  bool HasRoomFor(const DatasetEntry& dataset, const StreamReport& report) const;
  void EndStreams(DatasetEntry& dataset, MonotonicTime now) const;

  DatasetEntry* DatasetOf(const StreamReport& report);
  std::vector<std::string> TracesWanted(const Report& report, MemberId member);
  std::size_t TraceBytesHeld() const;
  static Cut CutOf(const DatasetEntry& dataset, const StreamState& stream);
  static std::vector<StreamState> StillPlanned(const DatasetEntry& dataset);

  static bool IsPlanned(const DatasetEntry& dataset, StreamId id);
  PlanInputs InputsNow(const DatasetEntry& dataset) const;
  static Recipe RecipeBy(const std::vector<JobRecipe>& jobs, const DatasetEntry& dataset,
                         const StreamState& stream);
  static std::vector<StreamState> WholeStreams(const DatasetEntry& dataset);
  static RevisionState ToState(const RevisionSpec& wanted, const DatasetEntry& dataset,
                               const std::vector<StreamState>& streams);
  void TakeRevisions(const DatasetEntry& dataset, PlanInputs& inputs) const;
  static bool AsksForTrial(const DatasetEntry& dataset, const PlanInputs& inputs);
  static bool IsAssignedAs(const DatasetEntry& dataset, const PlanInputs& inputs);
  static void NameRevisions(DatasetEntry& dataset, const PlanInputs& inputs);
  bool IsGathering(const DatasetEntry& dataset, MonotonicTime now) const;
  bool PlanIsDue(const DatasetEntry& dataset, const PlanInputs& inputs, MonotonicTime now) const;
  void Step(DatasetEntry& dataset, MonotonicTime now);
  void FixPlan(DatasetEntry& dataset, PlanInputs inputs, MonotonicTime now);
  static void SetBase(DatasetEntry& dataset, const PlanBase& base);
  static bool SharesHaveChanged(const DatasetEntry& dataset,
                                const std::vector<MemberCapacity>& now);
  Version NextNumber();
  RequestNumber NextRequest();
  static bool AllHaveAnswered(const DatasetEntry& dataset);
  void PlaceDatasets(MonotonicTime now);
  void SplitCapacities();
  std::vector<MemberCapacity> WithDeparting(std::vector<MemberCapacity> shares,
                                            const std::vector<MemberCapacity>& before,
                                            const std::string& dataset) const;
  void ShareGrants();
  CapacityWish WishOf(const DatasetSpec& spec) const;
  void PlaceManifest(DatasetEntry& dataset, MonotonicTime now) const;
  void Publish();
  DatasetState Describe(const DatasetEntry& dataset) const;
  DatasetStatus StatusOf(const DatasetEntry& dataset, MonotonicTime now) const;
  static void AddRevisions(const DatasetEntry& dataset, DatasetStatus& status);
  void AddStore(const DatasetEntry& dataset, MonotonicTime now, DatasetStatus& status) const;
  void AddNotes(const DatasetEntry& dataset, DatasetStatus& status) const;
  void NoteRetiring(const DatasetEntry& dataset, DatasetStatus& status) const;

  CoordinatorOptions options_;
  DesiredState state_;
  bool nodes_are_ahead_ = false;  // some node knows a higher version than state_
  bool learning_ = false;
  std::optional<MonotonicTime> first_report_;
  Version learned_;                // the highest that a node has reported meanwhile
  std::uint64_t last_number_ = 0;  // the counter of the latest generation or request
  bool placement_is_due_ = true;   // members, what they offer or what is wanted has changed
  Membership members_;
  Datasets datasets_;
  SavingsCollector savings_;
  RateBook rates_;
};

}  // namespace optcache::coordination
