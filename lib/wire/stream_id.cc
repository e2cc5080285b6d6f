#include "wire/stream_id.h"

#include "base/random.h"

namespace optcache::wire {

// FNV-1a, then a finalizer, since FNV's high bits change little with the last bytes.
StreamId StreamIdOf(std::string_view stream_name, std::uint32_t incarnation) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : stream_name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  const StreamId id = Random::Mix(hash ^ Random::Mix(incarnation));
  return id == 0 ? 1 : id;
}

}  // namespace optcache::wire
