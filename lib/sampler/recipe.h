#pragma once

// Recipe: what must be known of a training process's sampler to replay it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace optcache::sampler {

enum class Kind : std::uint8_t {
  kSequential,        // torch.utils.data.SequentialSampler: 0, 1, 2, ...
  kTorchDistributed,  // torch.utils.data.distributed.DistributedSampler, and what deals like it
  kTorchRandom,       // torch.utils.data.RandomSampler(generator=g), read through a DataLoader
  kMegatronCyclic,    // Megatron's MegatronPretrainingRandomSampler
  kSpdlRandom,        // SPDL's DistributedRandomSampler without weights
};

// When the DataLoader draws its workers' base seed (two random words) from the RandomSampler's
// generator: before the pass's permutation, or not at all.
enum class BaseSeed : std::uint8_t {
  kEveryPass,  // DataLoader(shuffle=True, generator=g)
  kFirstPass,  // the same with persistent_workers=True: later passes go on with the same workers
  kNever,  // DataLoader(sampler=RandomSampler(..., generator=g)): the loader has another generator
};

// `count` samples of the dataset, from `first` on.
struct IdRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  friend bool operator==(const IdRange&, const IdRange&) = default;
};

// Whatever two processes put in here equally, they replay equally. What does not concern the kind
// keeps its default.
struct Recipe {
  Kind kind = Kind::kTorchDistributed;
  std::uint64_t size = 0;   // samples over which the sampler draws: all, or those of `subset`
  std::int64_t seed = 0;    // PyTorch uses the low 32 bits of it (of seed + epoch, if distributed)
  std::uint32_t world = 1;  // ranks that share the order; not sequential, not torch-random
  bool shuffle = true;      // torch-distributed: false reads 0, 1, 2, ... shared among the ranks
  bool drop_last = false;   // true cuts the order to equal shares, false pads it

  // torch.randperm draws 64 bits a sample from kWideRandpermFrom samples on (see randperm.h), and
  // torch.randint from kWideRandintFrom. False for the versions before that, about torch 2.6.
  bool modern_randperm = true;

  // torch-random only.
  BaseSeed base_seed = BaseSeed::kEveryPass;
  // RandomSampler draws a second permutation at the end of each pass and uses none of it.
  // False for the versions before torch 1.12, which do not.
  bool tail_permutation = true;
  bool replacement = false;

  // Samples drawn in a pass: num_samples of torch-random, num_draws of spdl-random (of all ranks).
  // 0: size.
  std::uint64_t draws = 0;

  // This many ids in a row go to one rank: the batch size where whole batches are dealt
  // (Accelerate), a rank's part of a batch where batches are sliced, Megatron's micro batch.
  std::uint32_t block = 1;
  bool sharded = true;  // megatron-cyclic: data_sharding, each rank shuffles a part of its own

  // The samples of which the dataset that the sampler sees is made, one range after the other:
  // torch.utils.data.Subset of ranges, ConcatDataset of such. Empty: the whole dataset.
  std::vector<IdRange> subset{};

  friend bool operator==(const Recipe&, const Recipe&) = default;
};

inline constexpr std::uint64_t kMaxSize = kNoSample - 1ULL;  // so that every id is a SampleId
inline constexpr std::uint32_t kMaxWorld = 65536;
inline constexpr std::uint32_t kMaxBlock = 1U << 24U;
inline constexpr std::size_t kMaxRanges = 128;
// Of a pass: more than a rank can be followed through (sidecar) is of no use.
inline constexpr std::uint64_t kMaxDraws = 1ULL << 32U;

// kInvalidArgument with a sentence that names the field, its value and what to write instead.
Status Validate(const Recipe& recipe);

// Samples one rank reads in a pass, padding included. The recipe is valid. Where ranks read unequal
// numbers, it is the smallest: what some read beyond is not predicted.
std::uint64_t RankLength(const Recipe& recipe);
// Samples all ranks read in a pass: world * RankLength.
std::uint64_t PassLength(const Recipe& recipe);
// Samples that the dataset must have at least.
std::uint64_t SamplesNeeded(const Recipe& recipe);

// Is everything said by the fields that there were first, from kind to tail_permutation, and by the
// first three kinds? Older parts know no others.
bool IsBasic(const Recipe& recipe);

// The kind as it is written on command lines and in logs: "torch-distributed".
std::string_view KindName(Kind kind);
// kInvalidArgument lists the names that there are.
Result<Kind> ParseKind(std::string_view name);
// "every-pass", "first-pass", "never".
std::string_view BaseSeedName(BaseSeed base_seed);
Result<BaseSeed> ParseBaseSeed(std::string_view name);

}  // namespace optcache::sampler
