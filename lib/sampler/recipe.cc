// Says which recipes are valid, how long their passes are, and what their enumerators are called.
//
// The idea: a recipe is one struct for all kinds of sampler, so a field may be set that its kind
// does not have. Such a recipe means an order that the sampler does not make. Validate refuses what
// the kind cannot do, such as ranks of a sequential sampler or draws of a distributed one, and says
// what to set instead. The checks follow the fields: enumerators, size and world, kind, block,
// draws, subset. Later code (lengths, samplers) relies on a valid recipe and checks nothing.

#include "sampler/recipe.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

namespace optcache::sampler {
namespace {

template <typename Enum>
using NameTable = std::span<const std::pair<Enum, std::string_view>>;

constexpr std::array<std::pair<Kind, std::string_view>, 5> kKinds = {{
    {Kind::kSequential, "sequential"},
    {Kind::kTorchDistributed, "torch-distributed"},
    {Kind::kTorchRandom, "torch-random"},
    {Kind::kMegatronCyclic, "megatron-cyclic"},
    {Kind::kSpdlRandom, "spdl-random"},
}};

constexpr std::array<std::pair<BaseSeed, std::string_view>, 3> kBaseSeeds = {{
    {BaseSeed::kEveryPass, "every-pass"},
    {BaseSeed::kFirstPass, "first-pass"},
    {BaseSeed::kNever, "never"},
}};

template <typename Enum>
std::string_view NameOf(NameTable<Enum> table, Enum wanted) {
  for (const auto& [value, name] : table) {
    if (value == wanted) return name;
  }
  return "unknown";
}

template <typename Enum>
Result<Enum> ValueOf(NameTable<Enum> table, std::string_view wanted, std::string_view what) {
  std::string known;
  for (const auto& [value, name] : table) {
    if (name == wanted) return value;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  return Error(Code::kInvalidArgument, "unknown " + std::string(what) + " '" + std::string(wanted) +
                                           "': write one of " + known);
}

Status Invalid(std::string message) {
  return {Code::kInvalidArgument, std::move(message)};
}

// The enumerators may come from a wire or a file, where any number can stand.
Status ValidateEnumerators(const Recipe& recipe) {
  if (NameOf<Kind>(kKinds, recipe.kind) == "unknown") {
    return Invalid("sampler kind " + std::to_string(static_cast<int>(recipe.kind)) +
                   " is not known to this version: announce the pass as a trace of ids");
  }
  if (NameOf<BaseSeed>(kBaseSeeds, recipe.base_seed) == "unknown") {
    return Invalid("base_seed " + std::to_string(static_cast<int>(recipe.base_seed)) +
                   " is not known to this version: announce the pass as a trace of ids");
  }
  return OkStatus();
}

// What only some kinds can do must not be asked of the others.
Status ValidateUnshared(const Recipe& recipe) {
  const std::string kind(KindName(recipe.kind));
  if (recipe.world != 1) {
    return Invalid("sampler " + kind + " does not share its order among ranks, but world is " +
                   std::to_string(recipe.world) +
                   ": set world to 1 (one stream a rank), or use torch-distributed");
  }
  if (recipe.drop_last) {
    return Invalid("sampler " + kind +
                   " has no drop_last (the DataLoader's own changes no order): set it to false");
  }
  if (recipe.kind == Kind::kTorchRandom && !recipe.shuffle) {
    return Invalid("sampler torch-random always shuffles: use sequential, or set shuffle to true");
  }
  return OkStatus();
}

Status ValidateCut(const Recipe& recipe) {
  if (!recipe.drop_last) {
    return Invalid("sampler " + std::string(KindName(recipe.kind)) +
                   " never repeats samples to make shares equal: set drop_last to true");
  }
  if (!recipe.shuffle) {
    return Invalid("sampler " + std::string(KindName(recipe.kind)) +
                   " always shuffles: use torch-distributed, or set shuffle to true");
  }
  return OkStatus();
}

Status ValidateBlock(const Recipe& recipe) {
  const bool deals = recipe.kind == Kind::kTorchDistributed || recipe.kind == Kind::kMegatronCyclic;
  if (recipe.block == 0 || recipe.block > kMaxBlock) {
    return Invalid("block " + std::to_string(recipe.block) + " is outside 1 to " +
                   std::to_string(kMaxBlock) + ": give the batch size that ranks are dealt");
  }
  if (recipe.block != 1 && !deals) {
    return Invalid("sampler " + std::string(KindName(recipe.kind)) +
                   " does not deal batches: set block to 1");
  }
  if (!recipe.sharded && recipe.kind != Kind::kMegatronCyclic) {
    return Invalid("only sampler megatron-cyclic can be told not to shard: set sharded to true");
  }
  return OkStatus();
}

Status ValidateDraws(const Recipe& recipe) {
  const bool random = recipe.kind == Kind::kTorchRandom;
  if (recipe.replacement && !random) {
    return Invalid("only sampler torch-random draws with replacement: set replacement to false");
  }
  if (recipe.draws == 0) return OkStatus();
  if (!random && recipe.kind != Kind::kSpdlRandom) {
    return Invalid("sampler " + std::string(KindName(recipe.kind)) +
                   " reads each sample once: set draws to 0");
  }
  const std::uint64_t limit = random ? kMaxDraws : recipe.size;
  if (recipe.draws > limit) {
    return Invalid("draws " + std::to_string(recipe.draws) + " is above the limit of " +
                   std::to_string(limit) + " samples a pass");
  }
  if (random && !recipe.replacement && !recipe.tail_permutation && recipe.draws != recipe.size) {
    return Invalid(
        "versions before torch 1.12 have no num_samples without replacement: set draws "
        "to 0, or tail_permutation to true");
  }
  return OkStatus();
}

Status ValidateSubset(const Recipe& recipe) {
  if (recipe.subset.empty()) return OkStatus();
  if (recipe.subset.size() > kMaxRanges) {
    return Invalid("subset has " + std::to_string(recipe.subset.size()) +
                   " ranges, above the limit of " + std::to_string(kMaxRanges) +
                   ": announce the passes as traces of ids");
  }
  std::uint64_t count = 0;
  for (const IdRange& range : recipe.subset) {
    if (range.count == 0 || range.first > kMaxSize || range.count > kMaxSize - range.first) {
      return Invalid("subset: " + std::to_string(range.count) + " samples from " +
                     std::to_string(range.first) + " are none, or beyond the limit of " +
                     std::to_string(kMaxSize));
    }
    count += range.count;
  }
  if (count != recipe.size) {
    return Invalid("subset has " + std::to_string(count) + " samples, but size is " +
                   std::to_string(recipe.size) + ": size is what the sampler draws from");
  }
  return OkStatus();
}

Status ValidateKind(const Recipe& recipe) {
  switch (recipe.kind) {
    case Kind::kTorchDistributed:
      return OkStatus();
    case Kind::kSequential:
    case Kind::kTorchRandom:
      return ValidateUnshared(recipe);
    case Kind::kMegatronCyclic:
    case Kind::kSpdlRandom:
      return ValidateCut(recipe);
  }
  return OkStatus();
}

}  // namespace

Status Validate(const Recipe& recipe) {
  RETURN_IF_ERROR(ValidateEnumerators(recipe));
  if (recipe.size == 0) {
    return Invalid("the dataset has size 0: give the number of its samples");
  }
  if (recipe.size > kMaxSize) {
    return Invalid("size " + std::to_string(recipe.size) + " is above the limit of " +
                   std::to_string(kMaxSize) + " samples: split the dataset");
  }
  if (recipe.world == 0 || recipe.world > kMaxWorld) {
    return Invalid("world " + std::to_string(recipe.world) + " is outside 1 to " +
                   std::to_string(kMaxWorld) + ": give the number of training processes");
  }
  RETURN_IF_ERROR(ValidateKind(recipe));
  RETURN_IF_ERROR(ValidateBlock(recipe));
  RETURN_IF_ERROR(ValidateDraws(recipe));
  return ValidateSubset(recipe);
}

std::uint64_t RankLength(const Recipe& recipe) {
  const std::uint64_t drawn = recipe.draws == 0 ? recipe.size : recipe.draws;
  const std::uint64_t round = std::uint64_t{recipe.world} * recipe.block;
  const bool uneven = drawn % round != 0;
  return (drawn / round + (uneven && !recipe.drop_last ? 1 : 0)) * recipe.block;
}

std::uint64_t PassLength(const Recipe& recipe) {
  return RankLength(recipe) * recipe.world;
}

std::uint64_t SamplesNeeded(const Recipe& recipe) {
  std::uint64_t needed = recipe.subset.empty() ? recipe.size : 0;
  for (const IdRange& range : recipe.subset)
    needed = std::max(needed, range.first + range.count);
  return needed;
}

bool IsBasic(const Recipe& recipe) {
  Recipe rest = recipe;
  rest.replacement = false;
  rest.draws = 0;
  rest.block = 1;
  rest.sharded = true;
  rest.subset.clear();
  return recipe.kind <= Kind::kTorchRandom && rest == recipe;
}

std::string_view KindName(Kind kind) {
  return NameOf<Kind>(kKinds, kind);
}

Result<Kind> ParseKind(std::string_view name) {
  return ValueOf<Kind>(kKinds, name, "sampler");
}

std::string_view BaseSeedName(BaseSeed base_seed) {
  return NameOf<BaseSeed>(kBaseSeeds, base_seed);
}

Result<BaseSeed> ParseBaseSeed(std::string_view name) {
  return ValueOf<BaseSeed>(kBaseSeeds, name, "base seed");
}

}  // namespace optcache::sampler
