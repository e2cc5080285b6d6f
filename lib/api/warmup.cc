#include "api/warmup.h"

#include "api/fields.h"
#include "api/limits.h"

namespace optcache::api {
namespace {

constexpr std::int64_t kMaxTtlSeconds = 366LL * 24 * 3600;

void ReadSpec(Fields& spec, WarmupSpec& warmup) {
  spec.NeedSubdomain("dataset", warmup.dataset, kMaxResourceName);
  spec.ReadBytes("bandwidth", warmup.bandwidth);
  if (spec.Has("ttlSecondsAfterFinished"))
    spec.Read("ttlSecondsAfterFinished", warmup.ttl_seconds.emplace(), 0, kMaxTtlSeconds);
  spec.Read("when", warmup.when, kWarmupWhens);
  if (warmup.when == WarmupWhen::kOnIndexed && warmup.ttl_seconds)
    spec.Fault("ttlSecondsAfterFinished", "not with when OnIndexed, which does not end");
}

}  // namespace

WarmupSpec ReadWarmupSpec(Fields& resource) {
  WarmupSpec warmup;
  resource.NeedIn("spec", "write spec: {dataset: …}",
                  [&](Fields& spec) { ReadSpec(spec, warmup); });
  return warmup;
}

Result<WarmupSpec> ParseWarmupSpec(const nlohmann::json& object) {
  Errors errors;
  Fields resource(object, "", errors);
  CheckResourceName(resource);
  WarmupSpec warmup = ReadWarmupSpec(resource);
  RETURN_IF_ERROR(errors.status());
  return warmup;
}

}  // namespace optcache::api
