#include "operator/api/warmup_types.h"

#include <array>
#include <charconv>
#include <span>

#include <fmt/format.h>

#include "operator/api/fields.h"

namespace optcache::api {
namespace {

constexpr std::size_t kMaxWarmupName = 63;
constexpr std::size_t kMaxQuantityText = 32;
constexpr std::int64_t kMaxTtlSeconds = 366LL * 24 * 3600;

constexpr std::array<std::pair<std::string_view, WarmupWhen>, 2> kWhens{
    {{"Once", WarmupWhen::kOnce}, {"OnIndexed", WarmupWhen::kOnIndexed}}};

}  // namespace

Result<WarmupSpec> ParseWarmupSpec(const kube::Json& object) {
  ValidationErrors validation_errors;
  WarmupSpec spec;
  if (kube::KeyOf(object).name.size() > kMaxWarmupName) {
    validation_errors.Add(
        "metadata.name",
        fmt::format("at most {} characters, as it becomes the value of a label", kMaxWarmupName));
  }
  Fields fields(kube::Find(object, "/spec"), "spec", validation_errors);
  fields.Need("dataset", kMaxWarmupName, spec.dataset);
  std::string bandwidth;
  fields.ReadIntOrText("bandwidth", kMaxQuantityText, bandwidth);
  if (!bandwidth.empty()) {
    const Result<ByteCount> bytes = ParseQuantity(bandwidth);
    if (!bytes) {
      fields.Fault("bandwidth", bytes.error().message());
    } else if (*bytes == 0) {
      fields.Fault("bandwidth", "allowed: above 0; without it there is no limit");
    } else {
      spec.bandwidth = *bytes;
    }
  }
  if (fields.Has("ttlSecondsAfterFinished")) {
    std::int64_t seconds = 0;
    fields.Read("ttlSecondsAfterFinished", 0, kMaxTtlSeconds, seconds);
    spec.ttl_seconds = seconds;
  }
  fields.Read("when", std::span<const std::pair<std::string_view, WarmupWhen>>(kWhens), spec.when);
  if (spec.when == WarmupWhen::kOnIndexed && spec.ttl_seconds)
    fields.Fault("ttlSecondsAfterFinished", "not with when OnIndexed, which does not end");
  RETURN_IF_ERROR(validation_errors.status());
  return spec;
}

WarmupStatus ParseWarmupStatus(const kube::Json& object) {
  WarmupStatus status{
      .observed_generation = kube::NumberAt(object, "/status/observedGeneration").value_or(0),
      .manifest_digest = kube::TextAt(object, "/status/manifestDigest"),
      .samples = kube::CountAt(object, "/status/samples"),
      .bytes = kube::CountAt(object, "/status/bytes"),
      .total_bytes = kube::CountAt(object, "/status/totalBytes"),
      .start_time = kube::TextAt(object, "/status/startTime"),
      .completion_time = kube::TextAt(object, "/status/completionTime")};
  const std::string progress = kube::TextAt(object, "/status/progress");
  std::from_chars(progress.data(), progress.data() + progress.size(), status.progress);
  if (const kube::Json& conditions = kube::Items(object, "/status/conditions");
      conditions.is_array())
    status.conditions = conditions;
  return status;
}

kube::Json ToJson(const WarmupStatus& status) {
  kube::Json json = {{"observedGeneration", status.observed_generation},
                     {"progress", fmt::format("{}%", status.progress)},
                     {"conditions", status.conditions}};
  if (!status.manifest_digest.empty()) {
    json["manifestDigest"] = status.manifest_digest;
    json["samples"] = status.samples;
    json["bytes"] = status.bytes;
    json["totalBytes"] = status.total_bytes;
  }
  if (!status.start_time.empty()) json["startTime"] = status.start_time;
  if (!status.completion_time.empty()) json["completionTime"] = status.completion_time;
  return json;
}

}  // namespace optcache::api
