#pragma once

// The node's disk: its folder, its threads and, by dataset, what lies there. Decisions are taken in
// the parts (cache/disk_tier.h, dataset_cache.h).

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/callback_guard.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "cache/disk_state.h"
#include "cache/disk_threads.h"
#include "cache/disk_tier.h"
#include "cache/segment_files.h"
#include "net/event_loop.h"

namespace optcache::node {

// Used on the loop's thread only. Its destructor waits for what the disk is doing at that moment.
class NodeDisk {
 public:
  // Looks at all segments in `path`/optcache: a block or a few of each. An error: that folder
  // cannot be made, locked, listed or read; kConflict: another node has it.
  static Result<std::unique_ptr<NodeDisk>> Open(net::EventLoop& loop, const Clock& clock,
                                                const std::string& path, ByteCount capacity);

  // What lies there of one dataset; made if there is nothing.
  std::shared_ptr<cache::DiskTier> TierOf(std::uint64_t dataset);
  // Removes what lies there of others.
  void KeepOnly(const std::set<std::uint64_t>& datasets);
  void Tick();

  cache::DiskState& state() { return state_; }
  // Bytes of samples that plans may count on: not the room of segments that cannot be read, and 0
  // once it takes no more.
  ByteCount offered() const;
  void VisitCounters(const CounterVisitor& visit) const;

 private:
  NodeDisk(net::EventLoop& loop, const Clock& clock, const std::string& folder, ByteCount capacity,
           UniqueFd lock);

  void SayWhatIsWrong();

  UniqueFd lock_;  // first: it is held until the threads have ended
  const Clock& clock_;
  std::string folder_;
  cache::DiskState state_;
  std::unique_ptr<cache::SegmentFiles> files_;
  std::map<std::uint64_t, std::shared_ptr<cache::DiskTier>> tiers_;
  std::vector<std::shared_ptr<cache::DiskTier>> leaving_;  // their files are being removed
  bool said_failed_ = false;
  bool said_full_ = false;      // of this rest
  cache::DiskThreads threads_;  // they end before the above
  CallbackGuard guard_;         // last
};

}  // namespace optcache::node
