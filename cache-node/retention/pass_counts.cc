#include "cache-node/retention/pass_counts.h"

#include <algorithm>

namespace optcache::node {

using coordination::PassReport;

void PassCounts::OnHit(const ReadKey& key) {
  if (PassReport* const pass = Find(key)) ++pass->hits;
}

void PassCounts::OnPeerHit(const ReadKey& key) {
  if (PassReport* const pass = Find(key)) ++pass->peer_hits;
}

void PassCounts::OnMiss(const ReadKey& key, ByteCount size) {
  PassReport* const pass = Find(key);
  if (pass == nullptr) return;
  ++pass->misses;
  pass->miss_bytes += size;
}

void PassCounts::OnMoved(const ReadKey& kept_after, ByteCount size) {
  if (PassReport* const pass = Find(kept_after)) pass->moved_bytes += size;
}

void PassCounts::ForgetStream(StreamId stream) {
  passes_.erase(stream);
  last_ = nullptr;
}

// Null: it is not counted.
PassReport* PassCounts::Find(const ReadKey& key) {
  if (last_ != nullptr && last_->stream == key.stream && last_->pass == key.pass) return last_;
  if (key.stream == 0) return nullptr;
  const auto found = passes_.find(key.stream);
  if (found == passes_.end() && passes_.size() >= coordination::kMaxStreams) return nullptr;
  std::vector<PassReport>& passes = passes_[key.stream];
  auto place = std::ranges::lower_bound(passes, key.pass, {}, &PassReport::pass);
  if (place == passes.end() || place->pass != key.pass) {
    if (passes.size() == coordination::kPassesReported) {
      if (place == passes.begin()) return nullptr;  // older than all of them
      std::shift_left(passes.begin(), place, 1);
      --place;
      *place = {.stream = key.stream, .pass = key.pass};
    } else {
      place = passes.insert(place, {.stream = key.stream, .pass = key.pass});
    }
  }
  last_ = &*place;
  return last_;
}

}  // namespace optcache::node
