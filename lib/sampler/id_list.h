#pragma once

// The lists of ids that ranks read in a pass, as bytes (docs/formats/list.md): each id takes as
// many bits as the largest one of its dataset, so a permutation takes about as little as it can.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/stop_check.h"

namespace optcache::sampler {

inline constexpr std::size_t kMaxListBytes = 64U << 20U;
inline constexpr std::size_t kMaxRankListBytes = 32U << 20U;  // of one rank, as parts hand it on
inline constexpr std::uint32_t kMaxListRanks = 1U << 16U;

// How many ids all ranks together may read in a pass of a dataset of this many samples: so plans
// take memory in proportion to the dataset.
constexpr std::uint64_t MaxListIds(std::uint64_t samples) {
  return 8 * samples + (1U << 16U);
}

// Of an id of a dataset of this many samples: 1 to 32.
std::uint32_t BitsFor(std::uint64_t samples);
// How many bytes `ids` of them take.
std::uint64_t PackedBytes(std::uint64_t ids, std::uint32_t bits);

// The ids one after the other, from the lowest bit of the first byte up; what is left of the last
// byte is 0. They must fit in `bits`.
std::string PackIds(std::span<const SampleId> ids, std::uint32_t bits);

// What stands before the packed ids of one rank.
std::string ListHeader(std::uint64_t ids, std::uint32_t bits);
// The list of one rank.
std::string EncodeList(std::span<const SampleId> ids, std::uint32_t bits);

// Borrows the bytes that it was read from.
struct IdLists {
  std::uint32_t bits = 0;
  std::vector<std::uint64_t> lengths;    // by rank; none is 0
  std::vector<std::string_view> packed;  // the same
};
// kInvalidArgument for anything that is not written above, larger than kMaxListBytes, longer than
// MaxListIds, or of ids that are not as wide as those of a dataset of `samples`. Does not look at
// the ids.
Result<IdLists> ParseLists(std::string_view bytes, std::uint64_t samples);

// The lists of all ranks of a pass in one, the ranks in turn; they agree in their bits.
// kInvalidArgument: together they are too large.
Result<std::string> JoinLists(std::span<const std::string_view> ranks, std::uint64_t samples);

// Positions of a pass: as many of each rank as the shortest list has.
std::uint64_t PassLength(const IdLists& lists);

// The ids by position, index * ranks + rank. kInvalidArgument: one is not below `samples`.
// kCancelled once `stop` says so.
Result<std::vector<SampleId>> PassOrder(const IdLists& lists, std::uint64_t samples,
                                        const StopCheck& stop = {});

// kInvalidArgument: an id of a list, in any rank, is not below `samples`. Some are not looked at
// once `stop` says so.
Status CheckIds(const IdLists& lists, std::uint64_t samples, const StopCheck& stop = {});

}  // namespace optcache::sampler
