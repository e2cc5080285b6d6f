#pragma once

// status of a Warmup: what the operator writes, and later reads again as its own memory.

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "kube/object.h"

namespace optcache::api {

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
