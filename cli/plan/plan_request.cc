// Turns flags into the reads and the room of a plan, and finds the sampler that makes given reads.
//
// All limits are checked before an order is made, since an order takes memory. RecipeOfPlan tries
// the few samplers that OPT4TorchDataset's users have, with the file's seed, and compares every
// read; it stops at the first pass that differs.

#include "cli/plan/plan_request.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/decimal.h"
#include "cli/manifest/manifest_sizes.h"
#include "sampler/order_source.h"
#include "sampler/recipe_text.h"

namespace optcache::cli {
namespace {

using sampler::OrderSource;
using sampler::Recipe;

std::unexpected<Status> WrongFlag(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

// What OPT4TorchDataset draws: RandomSampler(range(size), num_samples=draws), read to its end.
Recipe RandomOnce(std::uint64_t size, std::uint64_t draws, std::int64_t seed, bool replacement) {
  return {.kind = sampler::Kind::kTorchRandom,
          .size = size,
          .seed = seed,
          .base_seed = sampler::BaseSeed::kNever,
          .replacement = replacement,
          .draws = draws};
}

Result<Recipe> RecipeOf(const PlanOrderFlags& flags) {
  if (!flags.recipe.empty()) {
    if (flags.dataset_size != 0 || !flags.sampler.empty()) {
      return WrongFlag("--recipe sets the whole order: leave --dataset-size and --sampler out");
    }
    return sampler::ParseRecipe(flags.recipe);
  }
  if (flags.dataset_size == 0) {
    return WrongFlag("the size of the dataset is missing: set --dataset-size N or --recipe");
  }
  if (flags.epochs == 0) {
    return RandomOnce(flags.dataset_size, flags.total_iter, flags.seed, flags.replacement);
  }
  Recipe recipe{.size = flags.dataset_size, .seed = flags.seed, .world = flags.world};
  if (!flags.sampler.empty()) {
    ASSIGN_OR_RETURN(recipe.kind, sampler::ParseKind(flags.sampler));
  }
  return recipe;
}

Status CheckPlanOrderFlags(const PlanOrderFlags& flags) {
  if ((flags.total_iter == 0) == (flags.epochs == 0)) {
    return WrongFlag(
               "the length of the run is missing: set --total-iter N (draws of one RandomSampler) "
               "or --epochs N (passes of --sampler or --recipe)")
        .error();
  }
  if (flags.epochs == 0 && (!flags.recipe.empty() || !flags.sampler.empty() || flags.world != 1)) {
    return WrongFlag("--recipe, --sampler and --world go with --epochs, not with --total-iter")
        .error();
  }
  if (flags.epochs != 0 && !flags.replacement) {
    return WrongFlag(
               "--no-replacement goes with --total-iter; with --epochs, samplers read each sample "
               "once a pass")
        .error();
  }
  return OkStatus();
}

// The first passes, of one rank or of all.
Result<std::vector<SampleId>> ReadPasses(const Recipe& recipe, std::uint64_t passes,
                                         std::optional<Rank> rank) {
  const std::uint64_t length = rank ? sampler::RankLength(recipe) : sampler::PassLength(recipe);
  if (length > plan::kMaxPlanReads / passes) {
    return WrongFlag(std::to_string(passes) + " passes of " + std::to_string(length) +
                     " reads: a plan has at most " + std::to_string(plan::kMaxPlanReads) +
                     " in all; plan fewer epochs at a time");
  }
  ASSIGN_OR_RETURN(OrderSource source, OrderSource::Make(recipe));
  std::vector<SampleId> reads;
  reads.reserve(static_cast<std::size_t>(length * passes));
  for (std::uint64_t pass = 0; pass < passes; ++pass) {
    ASSIGN_OR_RETURN(const std::vector<SampleId> order,
                     rank ? source.RankOrder(pass, *rank) : source.PassOrder(pass));
    reads.insert(reads.end(), order.begin(), order.end());
  }
  if (reads.empty()) return WrongFlag("this sampler reads nothing: the plan would be empty");
  return reads;
}

// "30%" as a number of percent.
Result<double> ParsePercent(std::string_view text) {
  const std::string_view number = text.substr(0, text.size() - 1);
  const std::optional<double> percent = ParseDecimal(number);
  if (!percent || *percent <= 0 || *percent > 100) {
    return WrongFlag("--capacity " + std::string(text) +
                     ": a share of the dataset lies above 0% and at most at 100%");
  }
  return *percent;
}

bool MakesOrder(const Recipe& recipe, std::span<const SampleId> reads) {
  auto source = OrderSource::Make(recipe);
  if (!source) return false;
  for (std::uint64_t pass = 0; !reads.empty(); ++pass) {
    const auto order = source->PassOrder(pass);
    if (!order || order->empty() || order->size() > reads.size()) return false;
    if (!std::ranges::equal(*order, reads.first(order->size()))) return false;
    reads = reads.subspan(order->size());
  }
  return true;
}

}  // namespace

Result<PlannedOrder> MakePlannedOrder(const PlanOrderFlags& flags) {
  RETURN_IF_ERROR(CheckPlanOrderFlags(flags));
  ASSIGN_OR_RETURN(const Recipe recipe, RecipeOf(flags));
  RETURN_IF_ERROR(sampler::Validate(recipe));
  const std::uint64_t samples = sampler::SamplesNeeded(recipe);
  if (samples > plan::kMaxPlanSamples) {
    return WrongFlag(std::to_string(samples) + " samples: a plan is for at most " +
                     std::to_string(plan::kMaxPlanSamples));
  }
  const std::uint64_t passes = std::max<std::uint64_t>(flags.epochs, 1);
  ASSIGN_OR_RETURN(std::vector<SampleId> reads, ReadPasses(recipe, passes, flags.rank));
  return PlannedOrder{.reads = std::move(reads),
                      .dataset_size = static_cast<std::uint32_t>(samples),
                      .seed = recipe.seed};
}

Result<std::optional<plan::Room>> MakePlannedRoom(const PlanRoomFlags& flags,
                                                  std::uint32_t dataset_size) {
  std::optional<plan::Sizes> sizes;
  if (!flags.manifest.empty()) {
    if (flags.capacity.empty()) return WrongFlag("--manifest goes with --capacity: set both");
    ASSIGN_OR_RETURN(sizes, SizesOfManifest(flags.manifest));
    if (sizes->count() != dataset_size) {
      return WrongFlag("--manifest " + flags.manifest + " lists " + std::to_string(sizes->count()) +
                       " samples, the order is one of " + std::to_string(dataset_size));
    }
  }
  if (flags.maxsize != 0) {
    if (!flags.capacity.empty()) return WrongFlag("set --maxsize or --capacity, not both");
    return plan::Room{.sizes = plan::Sizes::Equal(dataset_size, 1), .capacity = flags.maxsize};
  }
  if (flags.capacity.empty()) return std::nullopt;
  plan::Room room{.sizes = sizes ? *sizes : plan::Sizes::Equal(dataset_size, 1)};
  if (flags.capacity.ends_with('%')) {
    ASSIGN_OR_RETURN(const double percent, ParsePercent(flags.capacity));
    room.capacity = static_cast<ByteCount>(static_cast<double>(room.sizes.total()) * percent / 100);
  } else if (sizes) {
    ASSIGN_OR_RETURN(room.capacity, ParseQuantity(flags.capacity));
  } else {
    return WrongFlag("--capacity " + flags.capacity +
                     " is in bytes: give the sizes of samples with --manifest FILE, or set the "
                     "number to keep, --maxsize N or --capacity 30%");
  }
  if (room.capacity == 0) return WrongFlag("--capacity " + flags.capacity + " keeps nothing");
  return room;
}

std::optional<Recipe> RecipeOfPlan(const plan::PlanFile& plan) {
  const std::uint64_t draws = plan.reads.size();
  const Recipe recipes[] = {RandomOnce(plan.dataset_size, draws, plan.seed, true),
                            RandomOnce(plan.dataset_size, draws, plan.seed, false),
                            {.size = plan.dataset_size, .seed = plan.seed}};
  for (const Recipe& recipe : recipes) {
    const bool could = sampler::PassLength(recipe) <= draws && sampler::Validate(recipe).ok();
    if (could && MakesOrder(recipe, plan.reads)) return recipe;
  }
  return std::nullopt;
}

}  // namespace optcache::cli
