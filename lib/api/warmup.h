#pragma once

// A Warmup: manifests/crds/warmups.yaml in C++.

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "api/enumerations.h"
#include "base/bytes.h"
#include "base/result.h"

namespace optcache::api {

class Fields;

enum class WarmupWhen : std::uint8_t {
  kOnce,
  kOnIndexed,  // and again whenever the Dataset has another list of samples
};
inline constexpr Names<WarmupWhen, 2> kWarmupWhens{
    {{"Once", WarmupWhen::kOnce}, {"OnIndexed", WarmupWhen::kOnIndexed}}};

struct WarmupSpec {
  std::string dataset;                      // of the same namespace
  ByteCount bandwidth = 0;                  // bytes a second of all its pods together; 0: no limit
  std::optional<std::int64_t> ttl_seconds;  // after its end it is deleted; never with kOnIndexed
  WarmupWhen when = WarmupWhen::kOnce;
  friend bool operator==(const WarmupSpec&, const WarmupSpec&) = default;
};

// The field `spec` of a resource.
WarmupSpec ReadWarmupSpec(Fields& resource);

// Of a cluster's object. kInvalidArgument lists every error with its field.
Result<WarmupSpec> ParseWarmupSpec(const nlohmann::json& object);

}  // namespace optcache::api
