// Turns the inputs that the coordinator publishes into the planner's inputs and orders.
//
// A plan must be equal on all nodes. So all of this is a function of the task: members are numbered
// in the order of their ids, and no clock and no state of this node is read. A stream's order comes
// from its recipe, replayed pass by pass, or from its lists. Each list is checked before it is
// used: its digest, its number of ranks and its ids. A long computation asks `stop` as it goes.
// After a stop its result is not to be used.

#include "cache-node/planning/plan_task.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "coordination/stream_recipe.h"
#include "dataset/digest.h"
#include "sampler/id_list.h"
#include "sampler/order_source.h"

namespace optcache::node {
namespace {

// Replays them from its recipe.
class ReplayedOrder final : public StreamOrder {
 public:
  ReplayedOrder(coordination::StreamState stream, sampler::OrderSource source, StopCheck stop)
      : stream_(std::move(stream)), source_(std::move(source)), stop_(std::move(stop)) {}

  plan::Order PassOrder(PassNumber pass) override {
    if (stream_.recipe.passes != 0 && pass >= stream_.recipe.passes) return nullptr;
    const std::uint64_t epoch =
        stream_.first_epoch +
        std::uint64_t{stream_.epoch_step} * (pass - std::min(pass, stream_.first_pass));
    auto order = source_.PassOrder(epoch, stop_);
    if (!order) return nullptr;
    return std::make_shared<const std::vector<SampleId>>(*std::move(order));
  }

 private:
  coordination::StreamState stream_;
  sampler::OrderSource source_;
  StopCheck stop_;
};

constexpr std::size_t kDigestStep = 1U << 18U;  // bytes: some 1 ms

// Has them from lists. A pass after the last known one is taken to be like that one, so that what
// is kept for it is more than nothing; no plan of it is given out.
class ListedOrder final : public StreamOrder {
 public:
  static Result<std::unique_ptr<StreamOrder>> Make(const coordination::StreamState& stream,
                                                   const PlanTask& task, const StopCheck& stop) {
    std::unique_ptr<ListedOrder> made(new ListedOrder);
    made->stop_ = stop;
    made->samples_ = task.sizes.count();
    made->end_ = stream.recipe.passes;
    for (const coordination::PassTrace& trace : stream.traces) {
      if (trace.pass < stream.cut.pass) continue;
      const auto list = task.lists.find(trace.digest);
      if (list == task.lists.end() || DigestOf(*list->second, stop) != trace.digest) {
        return Error(Code::kDataLoss, "the list of pass " + std::to_string(trace.pass) +
                                          " of stream " + stream.name +
                                          " is not here, or not the bytes of its digest");
      }
      ASSIGN_OR_RETURN(const auto lists, sampler::ParseLists(*list->second, made->samples_));
      if (lists.lengths.size() != stream.recipe.world) {
        return Error(Code::kInvalidArgument,
                     "the list of stream " + stream.name + " is for another number of ranks");
      }
      RETURN_IF_ERROR(sampler::CheckIds(lists, made->samples_, stop));
      made->lists_[trace.pass] = list->second;
    }
    return made;
  }

  plan::Order PassOrder(PassNumber pass) override {
    if (lists_.empty() || pass < lists_.begin()->first || (end_ != 0 && pass >= end_))
      return nullptr;
    const auto last = std::prev(lists_.end());
    if (pass >= last->first) {
      if (last_order_ == nullptr) last_order_ = Read(*last->second);
      return last_order_;
    }
    const auto list = lists_.find(pass);
    return list == lists_.end() ? nullptr : Read(*list->second);
  }

 private:
  ListedOrder() = default;
  plan::Order Read(const std::string& bytes) const {
    auto order = sampler::PassOrder(sampler::ParseLists(bytes, samples_).value(), samples_, stop_);
    if (!order) return nullptr;  // it is to stop: the ids have been looked at
    return std::make_shared<const std::vector<SampleId>>(*std::move(order));
  }

  // As coordination::DigestHex.
  static std::string DigestOf(std::string_view bytes, const StopCheck& stop) {
    dataset::Sha256 digest;
    for (; !bytes.empty() && !stop.Now(); bytes.remove_prefix(std::min(bytes.size(), kDigestStep)))
      digest.Update(AsBytes(bytes.substr(0, kDigestStep)));
    return dataset::ToHex(digest.Finish());
  }

  StopCheck stop_;
  std::uint64_t samples_ = 0;
  PassNumber end_ = 0;  // the stream is over before this pass; 0: nobody knows
  std::map<PassNumber, std::shared_ptr<const std::string>> lists_;
  plan::Order last_order_;
};

Result<std::unique_ptr<StreamOrder>> MakeOrder(const coordination::StreamState& stream,
                                               const PlanTask& task, const StopCheck& stop) {
  if (!stream.recipe.known) return ListedOrder::Make(stream, task, stop);
  ASSIGN_OR_RETURN(const sampler::Recipe recipe, coordination::SamplerRecipe(stream.recipe));
  ASSIGN_OR_RETURN(sampler::OrderSource source, sampler::OrderSource::Make(recipe));
  return std::make_unique<ReplayedOrder>(stream, std::move(source), stop);
}

// Of the smallest member's memory. Without a disk: a quarter of the transit reserve, which is 2 %.
// With one, memory is emptied all the time and what is refused is soon taken (cache/tiering.h).
constexpr ByteCount kMovedShare = 200;
constexpr ByteCount kMovedShareWithDisk = 8;

}  // namespace

Result<StreamOrders> OrdersOf(const PlanTask& task, const StopCheck& stop) {
  StreamOrders orders;
  for (const coordination::StreamState& stream : task.streams) {
    ASSIGN_OR_RETURN(orders[stream.id], MakeOrder(stream, task, stop));
  }
  return orders;
}

// The last pass whose order is known.
PassNumber LastPass(const coordination::StreamState& stream) {
  const PassNumber end = stream.recipe.passes;
  const PassNumber last = end == 0 ? std::numeric_limits<PassNumber>::max() : end - 1;
  return stream.traces.empty() ? last : std::min(last, stream.traces.back().pass);
}

Position StopsAt(const coordination::StreamState& stream) {
  return stream.stops_at == 0 ? plan::kWholePass : stream.stops_at;
}

std::vector<wire::MemberId> MembersOf(const PlanTask& task) {
  std::vector<wire::MemberId> members;
  for (const auto& capacity : task.capacities)
    members.push_back(capacity.member);
  return members;
}

NodeIndex IndexOf(const std::vector<wire::MemberId>& members, wire::MemberId member) {
  const auto it = std::ranges::lower_bound(members, member);
  return it == members.end() || *it != member ? kNoNode
                                              : static_cast<NodeIndex>(it - members.begin());
}

ByteCount MaxMovedBytes(const std::vector<coordination::MemberCapacity>& capacities,
                        const plan::Sizes& sizes) {
  ByteCount smallest = plan::kUnlimitedBytes;
  for (const auto& capacity : capacities) {
    const ByteCount memory = capacity.bytes - std::min(capacity.disk, capacity.bytes);
    const ByteCount share = memory / (capacity.disk > 0 ? kMovedShareWithDisk : kMovedShare);
    if (memory > 0) smallest = std::min(smallest, share);
  }
  if (smallest == plan::kUnlimitedBytes || sizes.count() == 0) return plan::kUnlimitedBytes;
  // Samples of common size always move, else hardly anything would where few fit in a node.
  return std::max(smallest, 4 * (sizes.total() / sizes.count()));
}

Result<plan::Inputs> InputsOf(const PlanTask& task, const PlanTask::Base& base,
                              const StopCheck& stop) {
  const std::vector<wire::MemberId> members = MembersOf(task);
  plan::Inputs inputs{.sizes = task.sizes, .stop = stop};
  inputs.max_moved_bytes_per_sample = MaxMovedBytes(task.capacities, task.sizes);
  inputs.objective = task.objective;
  for (const auto& capacity : task.capacities)
    inputs.capacities.push_back(capacity.bytes);
  for (const coordination::StreamState& stream : task.streams) {
    plan::StreamInput input{.id = stream.id,
                            .rate = stream.rate_permille,
                            .pass = stream.cut.pass,
                            .position = stream.cut.position,
                            .stops_at = StopsAt(stream)};
    for (const wire::MemberId member : stream.node_of_rank) {
      input.node_of_rank.push_back(IndexOf(members, member));
    }
    inputs.streams.push_back(std::move(input));
  }
  Fill(inputs.base, task.sizes.count(), kNoNode, stop);
  for (const auto& [member, ids] : base) {
    const NodeIndex node = IndexOf(members, member);
    if (node == kNoNode) continue;
    for (std::size_t i = 0; i < ids.size() && !stop.At(i); ++i) {
      const SampleId id = ids[i];
      if (id >= task.sizes.count()) {
        return Error(Code::kInvalidArgument, "the base names a sample that does not exist");
      }
      inputs.base[id] = node;
    }
  }
  return inputs;
}

}  // namespace optcache::node
