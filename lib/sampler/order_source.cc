#include "sampler/order_source.h"

#include <string>

#include "sampler/distributed_sampler.h"
#include "sampler/megatron_sampler.h"
#include "sampler/sequential_sampler.h"
#include "sampler/spdl_sampler.h"
#include "sampler/subset.h"

namespace optcache::sampler {

Result<OrderSource> OrderSource::Make(const Recipe& recipe) {
  RETURN_IF_ERROR(Validate(recipe));
  return OrderSource(recipe);
}

OrderSource::OrderSource(const Recipe& recipe) : recipe_(recipe) {
  if (recipe.kind == Kind::kTorchRandom) random_.emplace(recipe);
}

Result<std::vector<SampleId>> OrderSource::PassOrder(std::uint64_t epoch, const StopCheck& stop) {
  ASSIGN_OR_RETURN(std::vector<SampleId> order, Drawn(epoch, stop));
  if (!recipe_.subset.empty()) MapToSubset(recipe_.subset, order, stop);
  if (stop.Now()) return Error(Code::kCancelled, "order: not wanted any more");
  return order;
}

Result<std::vector<SampleId>> OrderSource::Drawn(std::uint64_t epoch, const StopCheck& stop) {
  switch (recipe_.kind) {
    case Kind::kSequential:
      return SequentialOrder(recipe_.size, stop);
    case Kind::kTorchDistributed:
      return DistributedOrder(recipe_, epoch, stop);
    case Kind::kTorchRandom:
      return random_->PassOrder(epoch, stop);
    case Kind::kMegatronCyclic:
      return MegatronCyclicOrder(recipe_, epoch, stop);
    case Kind::kSpdlRandom:
      return SpdlOrder(recipe_, epoch, stop);
  }
  return Error(Code::kInternal, "a recipe of no kind");
}

Result<std::vector<SampleId>> OrderSource::RankOrder(std::uint64_t epoch, Rank rank) {
  if (rank >= recipe_.world) {
    return Error(Code::kInvalidArgument, "there is no rank " + std::to_string(rank) +
                                             " in a world of " + std::to_string(recipe_.world) +
                                             ": ranks count from 0");
  }
  ASSIGN_OR_RETURN(std::vector<SampleId> pass_order, PassOrder(epoch));
  if (recipe_.world == 1) return pass_order;
  return RankPart(pass_order, recipe_.world, rank);
}

std::vector<SampleId> RankPart(std::span<const SampleId> pass_order, std::uint32_t world,
                               Rank rank) {
  std::vector<SampleId> part;
  part.reserve(pass_order.size() / world + 1);
  for (std::size_t p = rank; p < pass_order.size(); p += world)
    part.push_back(pass_order[p]);
  return part;
}

}  // namespace optcache::sampler
