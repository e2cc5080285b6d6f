#include "sidecar/s3/byte_set.h"

#include <algorithm>
#include <iterator>

namespace optcache::sidecar {

void ByteSet::Add(const ByteRange& part) {
  if (part.length == 0) return;
  ByteCount begin = part.first;
  ByteCount end = part.first + part.length;
  auto at = stretches_.upper_bound(begin);
  if (at != stretches_.begin() && std::prev(at)->second >= begin) --at;
  while (at != stretches_.end() && at->first <= end) {
    begin = std::min(begin, at->first);
    end = std::max(end, at->second);
    count_ -= at->second - at->first;
    at = stretches_.erase(at);
  }
  if (stretches_.size() >= kStretchesMax) return;
  stretches_.emplace(begin, end);
  count_ += end - begin;
}

}  // namespace optcache::sidecar
