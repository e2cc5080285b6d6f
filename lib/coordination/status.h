#pragma once

// What the coordinator shows to people: GET /v1/status, `optcache status`, the table of `optcache
// up`.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "coordination/state.h"

namespace optcache::coordination {

struct MemberStatus {
  MemberId id = 0;
  std::uint64_t incarnation = 0;  // rises with each start of its process
  std::string name;
  std::string address;
  std::string metrics;        // URL; empty: none
  ByteCount capacity = 0;     // in memory
  ByteCount disk = 0;         // that it offers on its disk
  ByteCount used = 0;         // by all datasets, in memory and on disk
  ByteCount disk_used = 0;    // of these, on disk
  double silent_seconds = 0;  // since its last report
  Version applied;
  friend bool operator==(const MemberStatus&, const MemberStatus&) = default;
};

// Known to a host that started it; the coordinator itself hears of sidecars only what nodes say.
struct SidecarStatus {
  std::string name;
  std::string socket;   // for training processes
  std::string metrics;  // URL
  friend bool operator==(const SidecarStatus&, const SidecarStatus&) = default;
};

struct StreamStatus {
  std::string name;
  std::uint32_t incarnation = 0;
  PassNumber pass = 0;
  Position position = 0;  // of the farthest rank
  Position length = 0;    // of a pass
  std::uint32_t world = 0;
  std::uint64_t ranks = 0;       // known
  std::uint64_t ranks_lost = 0;  // known and not heard of
  bool planned = false;
  bool order_known = true;
  // As text (sampler/recipe_text.h); empty: it has none that can be replayed.
  std::string recipe{};
  std::uint64_t epoch = 0;       // of `pass`, as its order is made
  std::uint32_t epoch_step = 1;  // to the epoch of the next pass; 0: all have the same order
  bool repeats = false;          // a pass may read a sample several times, and others not at all
  double rate = 0;               // positions a second; 0: not measured
  std::string conflict;          // what its ranks disagree on
  std::string differs{};         // from what the CachePlan says of its job; empty: it does not
  friend bool operator==(const StreamStatus&, const StreamStatus&) = default;
};

struct NodeShare {
  std::string name;
  ByteCount used = 0;
  std::string revision{};             // that it follows
  Version derived{};                  // the newest plan that it has derived
  std::vector<TrialReport> trials{};  // what came of those that the state asks for
  friend bool operator==(const NodeShare&, const NodeShare&) = default;
};

// A pass that all members together have told of.
struct PassStatus {
  std::string stream;
  Position length = 0;    // reads that it has
  bool complete = false;  // every rank has begun a later one, or ended
  PassReport sum;
  friend bool operator==(const PassStatus&, const PassStatus&) = default;
};

// Whether the store answers sidecars, as those say that have asked it.
struct StoreStatus {
  std::uint64_t answering = 0;       // sidecars
  std::uint64_t silent = 0;          // sidecars that take it for gone,
  std::uint64_t members_silent = 0;  // on this many members
  double silent_seconds = 0;         // for how long, to whom for the longest
  std::string cause;                 // that one's last
  std::string changed;               // an object that is not the one that was indexed, met lately
  // Since the last word of a sidecar that it was silent; nullopt: there has been none, or another
  // coordinator heard it.
  std::optional<double> quiet_seconds;
  friend bool operator==(const StoreStatus&, const StoreStatus&) = default;
};

// Shares, 0 to 1, of the same reads: hits in this or another node's memory, and what the plans in
// force had predicted of them. Nullopt: nothing was read, or no plan covered it.
struct HitRatios {
  std::optional<double> observed;
  std::optional<double> predicted;
  friend bool operator==(const HitRatios&, const HitRatios&) = default;
};

// Sums over the members; those that have gone are counted in what only grows.
struct DatasetStatus {
  std::string name;
  std::string manifest_digest;
  Retention retention = Retention::kOptimal;
  Objective objective = Objective::kBytes;
  std::uint64_t total_samples = 0;
  ByteCount total_bytes = 0;
  ByteCount capacity = 0;  // granted by the members, for this manifest
  Version planned;
  std::string plan_digest;  // of the members that report this plan; empty: none does
  // Of members whose digest is not that of most who follow the same revision and plan the same
  // pass, ascending; if equally many have two digests, all of them. Empty: all agree.
  std::vector<std::string> nodes_that_differ;
  bool replanning = false;  // inventories are being collected
  DatasetReport sum;        // predicted_hit_ratio is the mean, weighted by requests
  Savings saved;            // by sidecars, also by those that have ended
  HitRatios ratios;         // of the last whole pass of each stream, else of the last 15 minutes
  std::vector<StreamStatus> streams;
  std::vector<std::string> notes;      // what the user should know
  std::vector<NodeShare> nodes;        // members that report the dataset
  std::vector<std::string> readers;    // members through which ranks read it, ascending
  std::uint64_t manifest_holders = 0;  // members that keep its manifest for others
  // Since when there are members who could and none of them does; 0: some do.
  double manifest_missed_seconds = 0;
  std::string revision;            // of members that are not in an update
  std::string update_revision;     // of those that are; empty: there is none
  std::vector<PassStatus> passes;  // by stream and pass
  StoreStatus store;
  friend bool operator==(const DatasetStatus&, const DatasetStatus&) = default;
};

struct ClusterStatus {
  Version version;
  std::vector<MemberStatus> members;
  std::vector<SidecarStatus> sidecars;
  std::vector<DatasetStatus> datasets;
  std::vector<DatasetStatus> retiring;  // as in the desired state
  friend bool operator==(const ClusterStatus&, const ClusterStatus&) = default;
};

// What to tell who asked for more capacity than there are bytes; nullopt: nothing.
std::optional<std::string> OversizeNote(ByteCount capacity, ByteCount dataset_bytes);

// "it answers nothing to 3 of 8 sidecars, on 2 machines, for more than 5 minutes (last: …)"; the
// same for a while, so that who keeps it need not write it again all the time.
std::string DescribeSilence(const StoreStatus& store);

// "a.jpg is not the object that was indexed, and reads of it fail. …".
std::string DescribeChange(std::string_view object);

std::string ToJson(const ClusterStatus& status);
// As coordination/codec.h.
Result<ClusterStatus> ParseClusterStatus(std::string_view json);

}  // namespace optcache::coordination
