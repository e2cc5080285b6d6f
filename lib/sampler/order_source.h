#pragma once

// The front header of sampler: the order of every pass of a training job, from its recipe.
//
//   ASSIGN_OR_RETURN(OrderSource source, OrderSource::Make({.size = 1'281'167, .world = 8}));
//   ASSIGN_OR_RETURN(const std::vector<SampleId> order, source.PassOrder(epoch));
//   // order[k * 8 + r] is what rank r reads as its k-th sample.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/stop_check.h"
#include "sampler/order_crc.h"
#include "sampler/random_sampler.h"
#include "sampler/recipe.h"

namespace optcache::sampler {

// Makes the order of one pass at a time, in 4 bytes a sample; about 10 ms at ImageNet's size. Bit
// for bit what PyTorch reads, if the recipe is true: compare OrderCrc with the training process's
// own. Not thread-safe: a value with one owner.
class OrderSource {
 public:
  // kInvalidArgument as Validate says.
  static Result<OrderSource> Make(const Recipe& recipe);

  const Recipe& recipe() const { return recipe_; }

  // What all ranks read in the pass, PassLength ids, padding included: the sample at position p is
  // read by rank p % world as its (p / world)-th.
  //
  // `epoch` is what the training process gives to set_epoch (torch-distributed) or shuffle
  // (spdl-random), how often all samples were consumed (megatron-cyclic), or the number of passes
  // before (torch-random; cheap in rising order, see RandomSampler). kInvalidArgument if it is too
  // far ahead for torch-random. kCancelled once `stop` says so; then no other may be asked for.
  Result<std::vector<SampleId>> PassOrder(std::uint64_t epoch, const StopCheck& stop = {});

  // What one rank reads in the pass, RankLength ids. Costs a PassOrder: who needs several ranks
  // takes RankPart of one. kInvalidArgument also if there is no such rank.
  Result<std::vector<SampleId>> RankOrder(std::uint64_t epoch, Rank rank);

 private:
  explicit OrderSource(const Recipe& recipe);
  // Before `subset`.
  Result<std::vector<SampleId>> Drawn(std::uint64_t epoch, const StopCheck& stop);

  Recipe recipe_;
  std::optional<RandomSampler> random_;  // of kind torch-random only
};

// Every world-th id of a pass's order, from `rank` on.
std::vector<SampleId> RankPart(std::span<const SampleId> pass_order, std::uint32_t world,
                               Rank rank);

}  // namespace optcache::sampler
