#include "plan/replay.h"

#include <cstddef>
#include <utility>

namespace optcache::plan {

Replay::Replay(Sizes sizes, std::vector<ByteCount> capacities, Holders base)
    : sizes_(std::move(sizes)),
      capacities_(std::move(capacities)),
      used_(capacities_.size()),
      holders_(std::move(base)) {
  holders_.resize(sizes_.count(), kNoNode);
  for (SampleId sample = 0; sample < holders_.size(); ++sample) {
    if (holders_[sample] != kNoNode) used_[holders_[sample]] += sizes_[sample];
  }
}

void Replay::Evict(std::span<const SampleId> samples) {
  for (const SampleId sample : samples) {
    const NodeIndex holder = std::exchange(holders_[sample], kNoNode);
    if (holder != kNoNode) used_[holder] -= sizes_[sample];
  }
}

void Replay::Relocate(std::span<const Relocation> moves) {
  for (const auto& [sample, from, to] : moves) {
    if (holders_[sample] != from) ++misplaced_;
    if (holders_[sample] != kNoNode) used_[holders_[sample]] -= sizes_[sample];
    holders_[sample] = to;
    used_[to] += sizes_[sample];
  }
  for (std::size_t node = 0; node < used_.size(); ++node) {
    if (used_[node] > capacities_[node]) ++capacity_exceeded_;
  }
}

void Replay::Read(SampleId sample, NodeIndex reader, const Decision& decision, std::size_t tenth) {
  const ByteCount bytes = sizes_[sample];
  const NodeIndex holder = holders_[sample];
  if (holder != decision.holder) ++misplaced_;
  ++stats_.accesses;
  ++stats_.accesses_by_tenth[tenth];
  stats_.bytes += bytes;
  if (holder == kNoNode) {
    ++stats_.store_reads;
    stats_.store_bytes += bytes;
  } else {
    used_[holder] -= bytes;
    ++stats_.hits_by_tenth[tenth];
    ++(holder == reader ? stats_.local_hits : stats_.peer_hits);
    (holder == reader ? stats_.local_hit_bytes : stats_.peer_hit_bytes) += bytes;
  }
  holders_[sample] = decision.keep_at;
  if (decision.keep_at == kNoNode) return;
  used_[decision.keep_at] += bytes;
  if (used_[decision.keep_at] > capacities_[decision.keep_at]) ++capacity_exceeded_;
  if (decision.keep_at != reader && decision.keep_at != holder) {
    ++stats_.moves;
    stats_.moved_bytes += bytes;
  }
}

}  // namespace optcache::plan
