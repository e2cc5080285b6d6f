#include "operator/api/warmup_status.h"

#include <charconv>

#include <fmt/format.h>

namespace optcache::api {

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
