#include "sidecar/clients/saved.h"

#include <fmt/format.h>

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

std::string SavedSentence(const std::vector<DatasetSaved>& all) {
  if (all.empty()) return "";
  std::vector<std::string> parts;
  Duration wait{};
  for (const DatasetSaved& of : all) {
    const std::string money =
        of.cost ? fmt::format(" ({} by its prices)", dataset::FormatMoney(*of.cost)) : "";
    parts.push_back(fmt::format("{} requests and {} of {}{}", of.saved.requests,
                                FormatSignedBytes(of.saved.bytes), of.dataset, money));
    wait += of.wait;
  }
  return fmt::format(
      "saved {}, compared with the same reads without a cache. Its processes waited {:.1f} s for "
      "samples.",
      fmt::join(parts, ", "), ToSeconds(wait));
}

}  // namespace optcache::sidecar
