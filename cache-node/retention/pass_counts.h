#pragma once

// What the ranks of this node read in each pass of each stream, and what was pushed from here after
// its reads. By the reads' keys, so that a pass is counted exactly, however far it is read ahead.

#include <cstddef>
#include <map>
#include <vector>

#include "base/bytes.h"
#include "cache-node/retention/plan_decision.h"
#include "coordination/state.h"

namespace optcache::node {

// Of the latest coordination::kPassesReported passes of each of coordination::kMaxStreams streams;
// what is read of others, or by no stream, is not counted. Not thread-safe: the event loop owns it.
class PassCounts {
 public:
  void OnHit(const ReadKey& key);
  void OnPeerHit(const ReadKey& key);
  void OnMiss(const ReadKey& key, ByteCount size);
  void OnMoved(const ReadKey& kept_after, ByteCount size);
  // It is listed from now on, with or without reads.
  void OnPassBegun(StreamId stream, PassNumber pass) { Find({.stream = stream, .pass = pass}); }
  // It is over; another one of this id begins with its first pass.
  void ForgetStream(StreamId stream);

  // Ascending by stream and pass. Valid until the next call of another function.
  const std::map<StreamId, std::vector<coordination::PassReport>>& passes() const {
    return passes_;
  }

 private:
  coordination::PassReport* Find(const ReadKey& key);

  std::map<StreamId, std::vector<coordination::PassReport>> passes_;  // ascending by pass
  coordination::PassReport* last_ = nullptr;                          // found last
};

}  // namespace optcache::node
