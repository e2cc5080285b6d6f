#pragma once

// Recipe: what must be known of a training process's sampler to replay it.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"

namespace optcache::sampler {

enum class Kind : std::uint8_t {
  kSequential,        // torch.utils.data.SequentialSampler: 0, 1, 2, ...
  kTorchDistributed,  // torch.utils.data.distributed.DistributedSampler
  kTorchRandom,       // torch.utils.data.RandomSampler(generator=g), read through a DataLoader
};

// When the DataLoader draws its workers' base seed (two random words) from the RandomSampler's
// generator: before the pass's permutation, or not at all.
enum class BaseSeed : std::uint8_t {
  kEveryPass,  // DataLoader(shuffle=True, generator=g)
  kFirstPass,  // the same with persistent_workers=True: later passes go on with the same workers
  kNever,  // DataLoader(sampler=RandomSampler(..., generator=g)): the loader has another generator
};

// Whatever two processes put in here equally, they replay equally. What does not concern the kind
// keeps its default.
struct Recipe {
  Kind kind = Kind::kTorchDistributed;
  std::uint64_t size = 0;   // samples in the dataset
  std::int64_t seed = 0;    // PyTorch uses the low 32 bits of it (of seed + epoch, if distributed)
  std::uint32_t world = 1;  // ranks that share the order; only torch-distributed has more than one
  bool shuffle = true;      // torch-distributed: false reads 0, 1, 2, ... shared among the ranks
  bool drop_last = false;   // torch-distributed: true cuts the order to equal shares, false pads it

  // torch.randperm draws 64 bits a sample from kWideRandpermFrom samples on (see randperm.h).
  // False for the versions before that, about torch 2.6.
  bool modern_randperm = true;

  // torch-random only.
  BaseSeed base_seed = BaseSeed::kEveryPass;
  // RandomSampler draws a second permutation at the end of each pass and uses none of it.
  // False for the versions before torch 1.12, which do not.
  bool tail_permutation = true;

  friend bool operator==(const Recipe&, const Recipe&) = default;
};

inline constexpr std::uint64_t kMaxSize = kNoSample - 1ULL;  // so that every id is a SampleId
inline constexpr std::uint32_t kMaxWorld = 65536;

// kInvalidArgument with a sentence that names the field, its value and what to write instead.
Status Validate(const Recipe& recipe);

// The first field in which two recipes differ, with both values: "seed: 3 and 4". Empty: none.
std::string FirstDifference(const Recipe& one, const Recipe& other);

// Samples one rank reads in a pass, padding included. The recipe is valid.
std::uint64_t RankLength(const Recipe& recipe);
// Samples all ranks read in a pass: world * RankLength.
std::uint64_t PassLength(const Recipe& recipe);

// The kind as it is written on command lines and in logs: "torch-distributed".
std::string_view KindName(Kind kind);
// kInvalidArgument lists the names that there are.
Result<Kind> ParseKind(std::string_view name);
// "every-pass", "first-pass", "never".
std::string_view BaseSeedName(BaseSeed base_seed);
Result<BaseSeed> ParseBaseSeed(std::string_view name);

}  // namespace optcache::sampler
