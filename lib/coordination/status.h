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
  std::string name;
  std::string address;
  std::string metrics;  // URL; empty: none
  ByteCount capacity = 0;
  ByteCount used = 0;         // by all datasets
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
  bool repeats = false;  // a pass may read a sample several times, and others not at all
  double rate = 0;       // positions a second; 0: not measured
  std::string conflict;  // what its ranks disagree on
  friend bool operator==(const StreamStatus&, const StreamStatus&) = default;
};

struct NodeShare {
  std::string name;
  ByteCount used = 0;
  friend bool operator==(const NodeShare&, const NodeShare&) = default;
};

// Sums over the members; those that have gone are counted in what only grows.
struct DatasetStatus {
  std::string name;
  std::string manifest_digest;
  Retention retention = Retention::kOptimal;
  std::uint64_t total_samples = 0;
  ByteCount total_bytes = 0;
  ByteCount capacity = 0;  // granted by the members, for this manifest
  Version planned;
  std::string plan_digest;  // of the members that report this plan; empty: none does
  bool digests_agree = true;
  bool replanning = false;  // inventories are being collected
  DatasetReport sum;        // predicted_hit_ratio is the mean, weighted by requests
  std::vector<StreamStatus> streams;
  std::vector<std::string> notes;      // what the user should know
  std::vector<NodeShare> nodes;        // members that report the dataset
  std::vector<std::string> readers;    // members through which ranks read it, ascending
  std::uint64_t manifest_holders = 0;  // members that keep its manifest for others
  // Since when there are members who could and none of them does; 0: some do.
  double manifest_missed_seconds = 0;
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

// Hits in this or another node's memory among all requests; nullopt: there were none.
std::optional<double> ObservedHitRatio(const DatasetReport& sum);

// What to tell who asked for more capacity than there are bytes; nullopt: nothing.
std::optional<std::string> OversizeNote(ByteCount capacity, ByteCount dataset_bytes);

std::string ToJson(const ClusterStatus& status);
// As coordination/codec.h.
Result<ClusterStatus> ParseClusterStatus(std::string_view json);

}  // namespace optcache::coordination
