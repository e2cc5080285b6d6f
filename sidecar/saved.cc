#include "sidecar/saved.h"

namespace optcache::sidecar {

void Delivered::Add(Source source, ByteCount size, std::optional<ByteCount> store_bytes) {
  ++samples[static_cast<std::size_t>(source)];
  bytes[static_cast<std::size_t>(source)] += size;
  if (!store_bytes) return;
  ++uncached.requests;
  uncached.bytes += *store_bytes;
}

Saved SavedBy(const StoreCost& uncached, const StoreCost& asked) {
  return {.requests = static_cast<std::int64_t>(uncached.requests - asked.requests),
          .bytes = static_cast<std::int64_t>(uncached.bytes - asked.bytes)};
}

}  // namespace optcache::sidecar
