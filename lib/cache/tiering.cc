#include "cache/tiering.h"

#include <algorithm>
#include <tuple>

namespace optcache::cache {
namespace {

constexpr ByteCount kSegmentShare = 16;  // of memory
constexpr ByteCount kSegmentBytesLeast = 256_KiB;
constexpr ByteCount kSegmentBytesMost = 32_MiB;
constexpr ByteCount kSegmentsFree = 3;
constexpr ByteCount kBatchShare = 32;     // of memory
constexpr ByteCount kOverheadShare = 10;  // of a disk

// The one that is used farthest ahead comes first.
bool GoesFirst(const SpillCandidate& a, const SpillCandidate& b) {
  return std::tuple(-a.next_use, a.last_use, a.id) < std::tuple(-b.next_use, b.last_use, b.id);
}

}  // namespace

ByteCount SegmentBytes(ByteCount memory) {
  const ByteCount bytes = std::clamp(memory / kSegmentShare, kSegmentBytesLeast, kSegmentBytesMost);
  return std::min(bytes, memory / 4);
}

ByteCount SpillBatchBytes(ByteCount memory) {
  return std::max(SegmentBytes(memory), memory / kBatchShare);
}

ByteCount SpillBytes(ByteCount in_memory, ByteCount memory, ByteCount awaited) {
  const ByteCount segment = SegmentBytes(memory);
  const ByteCount wanted_free =
      std::clamp(awaited, std::min(kSegmentsFree * segment, memory / 2), memory);
  return in_memory + wanted_free <= memory ? 0 : segment;
}

std::vector<SampleId> ChooseSpill(std::vector<SpillCandidate> candidates,
                                  const SpillLimits& limits) {
  const auto later = [](const auto& a, const auto& b) { return GoesFirst(b, a); };
  std::ranges::make_heap(candidates, later);
  std::vector<SpillCandidate> chosen;
  ByteCount bytes = 0;
  while (!candidates.empty() && bytes < limits.bytes && chosen.size() < limits.count) {
    std::ranges::pop_heap(candidates, later);
    const SpillCandidate candidate = candidates.back();
    candidates.pop_back();
    if (candidate.size > limits.room - bytes) break;  // what is used sooner does not go before it
    bytes += candidate.size;
    chosen.push_back(candidate);
  }
  std::ranges::stable_sort(chosen, {}, &SpillCandidate::next_use);
  std::vector<SampleId> ids;
  ids.reserve(chosen.size());
  for (const SpillCandidate& candidate : chosen)
    ids.push_back(candidate.id);
  return ids;
}

ByteCount DiskPayload(ByteCount disk) {
  return disk - disk / kOverheadShare;
}

}  // namespace optcache::cache
