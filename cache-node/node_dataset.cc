#include "cache-node/node_dataset.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "coordination/codec.h"

namespace optcache::node {
namespace {

ByteCount CapacityOf(const coordination::DatasetState& state, wire::MemberId self) {
  for (const auto& capacity : state.capacities) {
    if (capacity.member == self) return capacity.bytes;
  }
  return 0;
}

// What a member that is not listed holds stays for those who still find it there.
bool HasShare(const coordination::DatasetState& state, wire::MemberId self) {
  return std::ranges::find(state.capacities, self, &coordination::MemberCapacity::member) !=
         state.capacities.end();
}

bool IsPlanned(const coordination::StreamState& stream) {
  return stream.complete && coordination::HasOrder(stream);
}

// A cut that goes back is that of the stream's next life.
bool GoesOn(const coordination::StreamState& stream,
            const std::vector<coordination::StreamState>& streams) {
  return std::ranges::any_of(streams, [&](const coordination::StreamState& now) {
    return now.id == stream.id && now.cut >= stream.cut;
  });
}

DatasetConfig ToConfig(const coordination::DatasetState& state, wire::MemberId self,
                       plan::Sizes sizes) {
  const ByteCount capacity = CapacityOf(state, self);
  return {.key = state.key,
          .self = self,
          .retention = state.retention,
          .capacity = capacity,
          .reserve = capacity / kReserveShare,
          .sizes = std::move(sizes)};
}

}  // namespace

NodeDataset::NodeDataset(const coordination::DatasetState& state, wire::MemberId self,
                         plan::Sizes sizes, std::vector<dataset::Digest> digests, Effects& effects,
                         PlanDeriver::Deliver deliver)
    : state_({.name = state.name, .manifest_digest = state.manifest_digest, .key = state.key}),
      self_(self),
      sizes_(sizes),
      digests_(std::move(digests)),
      cache_(ToConfig(state, self, std::move(sizes)), {}, book_, effects),
      deriver_(std::move(deliver)) {}

bool NodeDataset::Apply(const coordination::DatasetState& state,
                        const std::vector<wire::MemberId>& members, MonotonicTime now) {
  for (const auto& stream : state_.streams) {
    if (GoesOn(stream, state.streams)) continue;
    book_.ForgetStream(stream.id);
    cache_.keeper().OnStreamEnded(stream.id);
    seen_.erase(stream.id);
    reached_.erase(stream.id);
  }
  const bool planned = state.planned != state_.planned;
  state_ = state;
  const DatasetConfig config = ToConfig(state, self_, sizes_);
  cache_.SetBudget(config.retention, config.capacity, config.reserve);
  cache_.SetMembers(members, now);
  return planned && config.retention == Retention::kOptimal;
}

bool NodeDataset::HasPlan() const {
  return state_.retention == coordination::Retention::kOptimal &&
         std::ranges::any_of(state_.streams, IsPlanned);
}

void NodeDataset::TrimToShare() {
  if (!HasPlan() && HasShare(state_, self_)) cache_.keeper().TrimToCapacity();
}

void NodeDataset::StartPlan(PlanTask::Base base, PlanTask::Lists lists) {
  PlanTask task{.version = state_.planned,
                .objective = state_.objective,
                .capacities = state_.capacities,
                .base = std::move(base),
                .sizes = sizes_,
                .lists = std::move(lists)};
  for (const auto& stream : state_.streams) {
    if (IsPlanned(stream)) task.streams.push_back(stream);
  }
  later_evictions_.clear();
  if (!task.streams.empty()) deriver_.Begin(std::move(task));
}

void NodeDataset::OnDerived(DerivedWindow window, MonotonicTime now) {
  if (window.version != state_.planned) return;  // of a version that is no more
  if (!window.status.ok()) {
    Log(LogLevel::kError, "no plan could be derived",
        {{"dataset", state_.name}, {"why", window.status.ToString()}});
    return;
  }
  cache_.keeper().KeepFor(window.passes_ahead);
  if (window.first) {
    Evict(window.evictions, std::numeric_limits<PassNumber>::max());
  } else if (!window.evictions.empty() && !window.passes.empty()) {
    const plan::PassKey& key = window.passes.front().plan->key();
    later_evictions_.push_back({.stream = key.stream, .pass = key.pass, .ids = window.evictions});
  }
  for (DerivedPass& pass : window.passes) {
    const plan::PlanStats& stats = pass.plan->stats();
    const plan::PassKey& key = pass.plan->key();
    newest_ = fmt::format("{} {:016x} {}", coordination::FormatVersion(window.version), key.stream,
                          key.pass);
    newest_digest_ = fmt::format("{:016x}", pass.plan->digest());
    Log(LogLevel::kInfo, "pass planned",
        {{"dataset", state_.name},
         {"plan", newest_},
         {"digest", newest_digest_},
         {"reads", stats.accesses},
         {"store_reads", stats.store_reads},
         {"moves", stats.moves}});
    book_.Add(std::move(pass));
  }
  cache_.keeper().OnNewPlan(now);
}

void NodeDataset::Evict(const std::vector<SampleId>& ids, PassNumber before) {
  for (const SampleId id : ids)
    cache_.keeper().Evict(id, before);
}

void NodeDataset::OnPassSeen(StreamId stream, PassNumber pass) {
  const bool known =
      std::ranges::any_of(state_.streams, [stream](const auto& one) { return one.id == stream; });
  if (!known) return;
  PassNumber& seen = seen_[stream];
  seen = std::max(seen, pass);
  book_.OnPassBegun(stream, seen);
}

void NodeDataset::FollowStreams(const StreamTable& streams) {
  std::map<StreamId, PassNumber> through;
  for (const auto& [stream, pass] : seen_) {
    through[stream] = pass + 1;
    const auto here = streams.Passes(stream);
    const PassNumber lowest = here ? here->lowest : pass;
    if (lowest <= reached_[stream]) continue;
    reached_[stream] = lowest;
    cache_.keeper().OnPassReached(stream, lowest);
    book_.Forget(stream, lowest - 1);
    std::erase_if(later_evictions_, [&, id = stream](const LaterEvictions& later) {
      if (later.stream != id || later.pass > lowest) return false;
      Evict(later.ids, later.pass);
      return true;
    });
  }
  deriver_.PlanThrough(through);
}

coordination::RequestNumber NodeDataset::TakeInventoryRequest() {
  if (state_.inventory_wanted <= inventories_given_) return 0;
  inventories_given_ = state_.inventory_wanted;
  return inventories_given_;
}

coordination::DatasetReport NodeDataset::Report() const {
  const Counters& counters = cache_.counters();
  return {.name = state_.name,
          .plan = newest_,
          .plan_digest = newest_digest_,
          .used_bytes = cache_.tier().used(),
          .samples = cache_.tier().samples(),
          .hits = counters.hits_local,
          .peer_hits = counters.hits_peer,
          .misses = counters.misses,
          .miss_bytes = counters.miss_bytes,
          .moves = counters.moves,
          .moved_bytes = counters.moved_bytes,
          .planned_misses = book_.foretold().store_reads,
          .predicted_hit_ratio = book_.hit_ratio(),
          .manifest_digest = state_.manifest_digest,
          .total_samples = sizes_.count(),
          .total_bytes = sizes_.total()};
}

}  // namespace optcache::node
