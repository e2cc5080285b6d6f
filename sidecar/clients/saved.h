#pragma once

// What training processes read of a dataset, and what the cache saved its store. Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "dataset/store_price.h"
#include "sidecar/fetch/fetcher.h"
#include "wire/messages.h"

namespace optcache::sidecar {

// Requests that a store gets, and the bytes that it sends for them.
struct StoreCost {
  std::uint64_t requests = 0;
  ByteCount bytes = 0;
  friend bool operator==(const StoreCost&, const StoreCost&) = default;
};

// The samples that were delivered of one dataset. A value with one owner.
struct Delivered {
  std::array<std::uint64_t, kSources> samples{};
  std::array<ByteCount, kSources> bytes{};
  StoreCost uncached;  // of the same reads, if each asks the store for its sample alone
  Duration wait{};     // from each request to its answer

  bool any() const { return samples != std::array<std::uint64_t, kSources>{}; }
  // `store_bytes` as DatasetPort::StoreBytesOf says.
  void Add(Source source, ByteCount size, std::optional<ByteCount> store_bytes);
};

// Below 0 while more was read ahead, or read again, than the cache delivered.
using Saved = dataset::StoreTraffic;

// Of one dataset, at the end of a sidecar.
struct DatasetSaved {
  std::string dataset;
  Saved saved;
  std::optional<double> cost;  // of it; nullopt: no price is known
  Duration wait{};
  wire::DatasetKey key = 0;
};

// For people: "saved 9 requests and 1.0 MiB of vision/images, compared with …". Empty: nothing was
// read.
std::string SavedSentence(const std::vector<DatasetSaved>& all);

Saved SavedBy(const StoreCost& uncached, const StoreCost& asked);

}  // namespace optcache::sidecar
