#pragma once

// One dataset on this node: its cache, its plans, and how desired states change them.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cache-node/control/stream_table.h"
#include "cache-node/planning/deriver_ends.h"
#include "cache-node/planning/following.h"
#include "cache-node/planning/plan_deriver.h"
#include "cache-node/planning/plan_index.h"
#include "cache-node/serving/dataset_cache.h"
#include "coordination/state.h"
#include "dataset/digest.h"

namespace optcache::node {

// Not thread-safe: the event loop owns it.
class NodeDataset {
 public:
  // `deliver` is called on another thread and must hand the window to OnDerived on the loop's.
  // `digests`: SHA-256 by sample, if the manifest has them.
  NodeDataset(const coordination::DatasetState& state, wire::MemberId self, plan::Sizes sizes,
              std::vector<dataset::Digest> digests, Effects& effects, PlanDeriver::Deliver deliver,
              std::shared_ptr<DeriverEnds> ends);
  // Its planning thread ends elsewhere, and may deliver until it has.
  ~NodeDataset();
  NodeDataset(const NodeDataset&) = delete;
  NodeDataset& operator=(const NodeDataset&) = delete;

  // Takes over members, budget and what is followed at once. True when a plan or a trial is due:
  // then StartPlan follows as soon as the base is there.
  bool Apply(const coordination::DatasetState& state, const std::vector<wire::MemberId>& members,
             MonotonicTime now);
  // Others are due what it holds beyond its share. With a plan, that says what goes.
  void TrimToShare();
  void StartPlan(PlanTask::Base base, PlanTask::Lists lists);
  // The base or a list cannot be had.
  void OnNoParts(const Status& why);
  void OnDerived(DerivedWindow window, MonotonicTime now);

  // Of a stream: what the next state's is compared with.
  struct StreamGeneration {
    coordination::Version version;  // the greatest that was seen
    coordination::Cut cut;          // the last that it had
  };

  // The node ends, at this time at the latest, and its disk with it or not. Where there is a plan,
  // the next one says what goes where; it is asked for by the coordinator, which may be away.
  struct Ending {
    MonotonicTime deadline;
    RetentionManager::OnDisk on_disk;
  };
  void OnEnding(const Ending& ending);
  // What is here is on its way to others, or need not be.
  bool has_left() const { return has_left_; }
  // When the node ends: a plan without it will say what goes where.
  bool AwaitsLastPlan() const;
  // It ends without a plan: all goes to its next home. How many samples that are.
  std::size_t GiveAway(MonotonicTime now);

  // It is placed here no more, and what no plan has sent to others in time goes to its next home.
  // Called about ten times a second.
  void GiveAwayIfDue(MonotonicTime now);

  // A read of `stream` in `pass` passed through here.
  void OnPassSeen(StreamId stream, PassNumber pass);
  // Forgets passes that are over, asks for those that come. Called about ten times a second.
  void FollowStreams(const StreamTable& streams);

  DatasetCache& cache() { return cache_; }
  const DatasetCache& cache() const { return cache_; }
  const PlanIndex& book() const { return book_; }
  const coordination::DatasetState& state() const { return state_; }
  const std::string& name() const { return state_.name; }
  // What is in force here: for a plan, once its first window is derived.
  const std::string& revision() const { return revision_; }
  const std::vector<dataset::Digest>& digests() const { return digests_; }
  // When an inventory is asked for that has not been given yet: its number, once.
  coordination::RequestNumber TakeInventoryRequest();
  coordination::DatasetReport Report() const;

 private:
  bool Knows(StreamId stream) const;
  bool StaysWithPlan(const coordination::DatasetState& state, const Following& next) const;
  void TakeGenerations(const std::vector<coordination::StreamState>& streams);
  void TakePlanInputs(const Following& next);
  void TakeInForce();
  bool TakeTrials();
  void StartTrials(const PlanTask::Base& base, const PlanTask::Lists& lists);
  std::vector<coordination::PassReport> ReportPasses() const;
  std::vector<coordination::TrialReport> ReportTrials() const;
  void Evict(const std::vector<SampleId>& ids, PassNumber before);
  void Depart(const std::vector<RetentionManager::Departure>& departures, MonotonicTime now);

  struct LaterEvictions {
    StreamId stream = 0;
    PassNumber pass = 0;
    std::vector<SampleId> ids;
  };

  coordination::DatasetState state_;
  wire::MemberId self_;
  plan::Sizes sizes_;
  std::vector<dataset::Digest> digests_;
  Following following_;
  std::string revision_;           // in force
  coordination::Version derived_;  // `planned` of what is in force
  std::uint64_t plan_number_ = 0;  // of what is followed; rises when that changes
  bool awaits_plan_ = false;       // its first window has not come
  bool plan_started_ = false;      // it is being derived
  std::optional<Ending> ending_;   // unset: it goes on
  bool has_left_ = false;
  std::optional<MonotonicTime> give_away_at_;  // unset: it is placed here, or the node ends
  // By id; without a value while it is under way.
  std::map<std::string, std::optional<coordination::TrialReport>> trials_;
  PlanIndex book_;
  std::string newest_;         // the pass planned last: version, stream, pass
  std::string newest_digest_;  // of that pass
  DatasetCache cache_;
  // The request that was answered last; another coordinator's may be less.
  coordination::RequestNumber inventory_given_ = 0;
  std::map<StreamId, PassNumber> seen_;               // the latest pass of each stream
  std::map<StreamId, StreamGeneration> generations_;  // of the streams in state_
  std::map<StreamId, PassNumber> reached_;            // the pass in which all of its ranks here are
  std::vector<LaterEvictions> later_evictions_;
  std::shared_ptr<DeriverEnds> ends_;
  std::unique_ptr<PlanDeriver> deriver_;  // never null; knows nothing of the rest
};

// Also those that retire: a Dataset has one for each manifest that is read.
using Datasets = std::map<wire::DatasetKey, std::shared_ptr<NodeDataset>>;

}  // namespace optcache::node
