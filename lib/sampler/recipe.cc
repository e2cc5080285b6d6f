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

constexpr std::array<std::pair<Kind, std::string_view>, 3> kKinds = {{
    {Kind::kSequential, "sequential"},
    {Kind::kTorchDistributed, "torch-distributed"},
    {Kind::kTorchRandom, "torch-random"},
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

// All of them, as people read them.
using Fields = std::array<std::pair<std::string_view, std::string>, 9>;
Fields FieldsOf(const Recipe& recipe) {
  const auto flag = [](bool value) { return value ? "true" : "false"; };
  return {{{"sampler", std::string(KindName(recipe.kind))},
           {"size", std::to_string(recipe.size)},
           {"seed", std::to_string(recipe.seed)},
           {"world", std::to_string(recipe.world)},
           {"shuffle", flag(recipe.shuffle)},
           {"drop_last", flag(recipe.drop_last)},
           {"modern_randperm", flag(recipe.modern_randperm)},
           {"base_seed", std::string(BaseSeedName(recipe.base_seed))},
           {"tail_permutation", flag(recipe.tail_permutation)}}};
}

// What only DistributedSampler can do must not be asked of the others.
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
  if (recipe.kind != Kind::kTorchDistributed) RETURN_IF_ERROR(ValidateUnshared(recipe));
  return OkStatus();
}

std::string FirstDifference(const Recipe& one, const Recipe& other) {
  const Fields ours = FieldsOf(one);
  const Fields theirs = FieldsOf(other);
  const auto [first, second] = std::ranges::mismatch(ours, theirs);
  if (first == ours.end()) return {};
  return std::string(first->first) + ": " + first->second + " and " + second->second;
}

std::uint64_t RankLength(const Recipe& recipe) {
  const std::uint64_t whole = recipe.size / recipe.world;
  const bool uneven = recipe.size % recipe.world != 0;
  return uneven && !recipe.drop_last ? whole + 1 : whole;
}

std::uint64_t PassLength(const Recipe& recipe) {
  return RankLength(recipe) * recipe.world;
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
