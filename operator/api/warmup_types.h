#pragma once

// A Warmup as the operator reads it: manifests/crds/warmups.yaml in C++.

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "kube/object.h"
#include "kube/resources.h"

namespace optcache::api {

inline constexpr kube::Resource kWarmups{
    .group = "optcache.io", .version = "v1alpha1", .kind = "Warmup", .plural = "warmups"};

enum class WarmupWhen : std::uint8_t {
  kOnce,
  kOnIndexed,  // and again whenever the Dataset has another list of samples
};

struct WarmupSpec {
  std::string dataset;                      // of the same namespace
  ByteCount bandwidth = 0;                  // bytes a second of all its pods together; 0: no limit
  std::optional<std::int64_t> ttl_seconds;  // after its end it is deleted; never with kOnIndexed
  WarmupWhen when = WarmupWhen::kOnce;
  friend bool operator==(const WarmupSpec&, const WarmupSpec&) = default;
};

// kInvalidArgument lists every fault with its field.
Result<WarmupSpec> ParseWarmupSpec(const kube::Json& object);

// status: what the operator writes, and later reads again as its own memory.
struct WarmupStatus {
  std::int64_t observed_generation = 0;
  std::string manifest_digest;  // of the list of samples that it warms, or has warmed; empty: none
  std::int64_t progress = 0;    // percent of what nodes have room for
  std::uint64_t samples = 0;    // that lie at nodes
  ByteCount bytes = 0;          // likewise
  ByteCount total_bytes = 0;    // for which there is room
  std::string start_time;       // as the API server writes times; empty: not begun
  std::string completion_time;  // empty: not ended
  kube::Json conditions = kube::Json::array();
};

// What cannot be read has its default value.
WarmupStatus ParseWarmupStatus(const kube::Json& object);
kube::Json ToJson(const WarmupStatus& status);

}  // namespace optcache::api
