#include "operator/api/dataset_status.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/decimal.h"

namespace optcache::api {
namespace {

using kube::CountAt;

std::optional<double> RatioAt(const kube::Json& status, std::string_view pointer) {
  const std::optional<double> ratio = ParseDecimal(kube::TextAt(status, pointer));
  const bool is_ratio = ratio && *ratio >= 0 && *ratio <= 1;
  return is_ratio ? ratio : std::nullopt;
}

std::int64_t SavedAt(const kube::Json& saved, std::string_view pointer) {
  return std::clamp(kube::NumberAt(saved, pointer).value_or(0), -coordination::kMaxSaved,
                    coordination::kMaxSaved);
}

SavedStatus ParseSaved(const kube::Json& saved) {
  constexpr auto kMaxSeconds =
      static_cast<std::uint64_t>(coordination::kMaxSaved) / kMicrosecondsPerSecond;
  return {.saved = {.requests = SavedAt(saved, "/requests"),
                    .bytes = SavedAt(saved, "/bytes"),
                    .wait_us = std::min(CountAt(saved, "/waitedSeconds"), kMaxSeconds) *
                               kMicrosecondsPerSecond},
          .cost = kube::TextAt(saved, "/cost"),
          .at = kube::TextAt(saved, "/time")};
}

kube::Json ToJson(const SavedStatus& status) {
  kube::Json json = {{"requests", status.saved.requests},
                     {"bytes", status.saved.bytes},
                     {"size", FormatSignedBytes(status.saved.bytes)},
                     {"waitedSeconds", status.saved.wait_us / kMicrosecondsPerSecond},
                     {"time", status.at}};
  if (!status.cost.empty()) json["cost"] = status.cost;
  return json;
}

}  // namespace

DatasetStatus ParseDatasetStatus(const kube::Json& object) {
  const kube::Json& json = kube::Find(object, "/status");
  DatasetStatus status{
      .observed_generation = kube::NumberAt(json, "/observedGeneration").value_or(0),
      .index_hash = kube::TextAt(json, "/indexHash"),
      .manifest_digest = kube::TextAt(json, "/manifestDigest"),
      .samples = CountAt(json, "/samples"),
      .bytes = CountAt(json, "/bytes"),
      .largest_sample = CountAt(json, "/largestSample"),
      .manifest_holders = CountAt(json, "/manifestHolders"),
      .cached_bytes = CountAt(json, "/cachedBytes"),
      .hit_ratio = RatioAt(json, "/hitRatio"),
      .predicted_hit_ratio = RatioAt(json, "/predictedHitRatio")};
  for (const kube::Json& node : kube::Items(json, "/nodes"))
    status.nodes.push_back({.name = kube::TextAt(node, "/name"), .bytes = CountAt(node, "/bytes")});
  std::ranges::sort(status.nodes, {}, &NodeBytes::name);
  if (const kube::Json& capacity = kube::Find(json, "/capacity"); capacity.is_object()) {
    status.capacity = {.granted = CountAt(capacity, "/granted"),
                       .on_disk = CountAt(capacity, "/onDisk"),
                       .guaranteed = CountAt(capacity, "/guaranteed"),
                       .maximum = CountAt(capacity, "/maximum"),
                       .read_rate = CountAt(capacity, "/readBytesPerSecond"),
                       .saved_rate = CountAt(capacity, "/savedBytesPerSecond")};
  }
  if (const kube::Json& saved = kube::Find(json, "/saved"); saved.is_object())
    status.saved = ParseSaved(saved);
  if (const kube::Json& change = kube::Find(json, "/lastChange"); change.is_object()) {
    status.last_change = {.added = CountAt(change, "/added"),
                          .changed = CountAt(change, "/changed"),
                          .removed = CountAt(change, "/removed"),
                          .message = kube::TextAt(change, "/message"),
                          .at = kube::TextAt(change, "/time")};
  }
  status.conditions = kube::Items(json, "/conditions");
  return status;
}

kube::Json ToJson(const DatasetStatus& status) {
  kube::Json json = {{"observedGeneration", status.observed_generation},
                     {"conditions", status.conditions}};
  if (!status.manifest_digest.empty()) {
    json["indexHash"] = status.index_hash;
    json["manifestDigest"] = status.manifest_digest;
    json["samples"] = status.samples;
    json["bytes"] = status.bytes;
    json["largestSample"] = status.largest_sample;
    json["size"] = FormatBytes(status.bytes);
    json["manifestHolders"] = status.manifest_holders;
    json["cachedBytes"] = status.cached_bytes;
    json["cached"] = FormatBytes(status.cached_bytes);
  }
  if (status.hit_ratio) json["hitRatio"] = fmt::format("{:.3f}", *status.hit_ratio);
  if (status.predicted_hit_ratio)
    json["predictedHitRatio"] = fmt::format("{:.3f}", *status.predicted_hit_ratio);
  if (status.capacity) {
    json["capacity"] = {{"granted", status.capacity->granted},
                        {"guaranteed", status.capacity->guaranteed},
                        {"maximum", status.capacity->maximum},
                        {"readBytesPerSecond", status.capacity->read_rate},
                        {"savedBytesPerSecond", status.capacity->saved_rate}};
    if (status.capacity->on_disk > 0) json["capacity"]["onDisk"] = status.capacity->on_disk;
  }
  if (status.saved) json["saved"] = ToJson(*status.saved);
  if (status.last_change) {
    json["lastChange"] = {{"added", status.last_change->added},
                          {"changed", status.last_change->changed},
                          {"removed", status.last_change->removed},
                          {"message", status.last_change->message},
                          {"time", status.last_change->at}};
  }
  if (!status.nodes.empty()) {
    kube::Json nodes = kube::Json::array();
    for (const NodeBytes& node : status.nodes)
      nodes.push_back({{"name", node.name}, {"bytes", node.bytes}});
    json["nodes"] = std::move(nodes);
  }
  return json;
}

}  // namespace optcache::api
