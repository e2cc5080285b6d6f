#pragma once

// One dataset on this node: its cache, its plans, and how desired states change them.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cache-node/dataset_cache.h"
#include "cache-node/plan_book.h"
#include "cache-node/plan_deriver.h"
#include "cache-node/stream_table.h"
#include "coordination/state.h"
#include "dataset/digest.h"

namespace optcache::node {

// Not thread-safe: the event loop owns it.
class NodeDataset {
 public:
  // `deliver` is called on another thread and must hand the window to OnDerived on the loop's.
  // `digests`: SHA-256 by sample, if the manifest has them.
  NodeDataset(const coordination::DatasetState& state, wire::MemberId self, plan::Sizes sizes,
              std::vector<dataset::Digest> digests, Effects& effects, PlanDeriver::Deliver deliver);

  // Takes over members, budget and retention at once. True when a plan is due: then StartPlan
  // follows as soon as the base is there.
  bool Apply(const coordination::DatasetState& state, const std::vector<wire::MemberId>& members,
             MonotonicTime now);
  // Others want what it holds beyond its share. With a plan, that says what goes.
  void TrimToShare();
  void StartPlan(PlanTask::Base base, PlanTask::Lists lists);
  void OnDerived(DerivedWindow window, MonotonicTime now);

  // A read of `stream` in `pass` passed through here.
  void OnPassSeen(StreamId stream, PassNumber pass);
  // Forgets passes that are over, asks for those that come. Called about ten times a second.
  void FollowStreams(const StreamTable& streams);

  DatasetCache& cache() { return cache_; }
  const DatasetCache& cache() const { return cache_; }
  const PlanBook& book() const { return book_; }
  const coordination::DatasetState& state() const { return state_; }
  const std::string& name() const { return state_.name; }
  const std::vector<dataset::Digest>& digests() const { return digests_; }
  // When an inventory is asked for that has not been given yet: its number, once.
  coordination::RequestNumber TakeInventoryRequest();
  coordination::DatasetReport Report() const;

 private:
  bool HasPlan() const;
  void Evict(const std::vector<SampleId>& ids, PassNumber before);

  struct LaterEvictions {
    StreamId stream = 0;
    PassNumber pass = 0;
    std::vector<SampleId> ids;
  };

  coordination::DatasetState state_;
  wire::MemberId self_;
  plan::Sizes sizes_;
  std::vector<dataset::Digest> digests_;
  PlanBook book_;
  std::string newest_;         // the pass planned last: version, stream, pass
  std::string newest_digest_;  // of that pass
  DatasetCache cache_;
  coordination::RequestNumber inventories_given_ = 0;
  std::map<StreamId, PassNumber> seen_;     // the latest pass of each stream
  std::map<StreamId, PassNumber> reached_;  // the pass in which all of its ranks here are
  std::vector<LaterEvictions> later_evictions_;
  PlanDeriver deriver_;  // last: its thread ends before the rest goes
};

}  // namespace optcache::node
