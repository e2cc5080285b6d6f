// Reads a Dataset's spec, one function for each part of it, in the order of the CRD.

#include "api/dataset.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "api/fields.h"
#include "api/limits.h"
#include "base/decimal.h"
#include "dataset/index_interval.h"
#include "dataset/patience.h"

namespace optcache::api {
namespace {

// Those of the CRD.
constexpr std::int64_t kMaxRequests = 1'000'000;  // a second
constexpr std::size_t kMaxIncludes = 64;
constexpr std::size_t kMaxSelector = 32;
constexpr std::size_t kMaxAccess = 64;
constexpr std::size_t kMaxTiers = 2;
constexpr std::int64_t kMaxNodes = 100'000;
constexpr double kMaxPercent = 1000;

enum class Tier { kMemory, kDisk };
constexpr Names<Tier, 2> kTiers{{{"Memory", Tier::kMemory}, {"Disk", Tier::kDisk}}};

void ReadSpan(Fields& fields, const char* name, Result<Duration> (*parse)(std::string_view),
              std::int64_t& seconds) {
  std::string text;
  fields.Read(name, text, kMaxQuantity);
  if (!fields.Has(name)) return;
  const Result<Duration> span = parse(text);
  if (!span) return fields.Fault(name, span.error().message());
  seconds = std::chrono::duration_cast<std::chrono::seconds>(*span).count();
}

void ReadPrice(Fields& cost, const char* name, double& out) {
  std::string text;
  cost.ReadIntOrText(name, text, dataset::kPriceCharactersMax);
  if (!cost.Has(name)) return;
  const Result<double> price = dataset::ParsePrice(text);
  if (!price) return cost.Fault(name, price.error().message());
  out = *price;
}

void ReadCapacity(Fields& cache, const char* name, Capacity& out) {
  if (!cache.Has(name))
    return cache.Fault(name, "missing, allowed: a quantity (500Gi) or a share (30%)");
  std::string text;
  cache.ReadIntOrText(name, text, kMaxQuantity);
  const Result<Capacity> capacity = ParseCapacity(text);
  if (!capacity) return cache.Fault(name, capacity.error().message());
  out = *capacity;
}

// Memory is always one of them, as all samples arrive there.
bool ReadTiers(Fields& cache) {
  std::vector<std::string> tiers;
  cache.Read("tiers", tiers, kMaxTiers, kMaxLabel);
  for (const std::string& tier : tiers) {
    if (!ValueIn(kTiers, tier))
      cache.Fault("tiers", "'" + tier + "' is not known, allowed: Memory, Disk");
  }
  return std::ranges::find(tiers, "Disk") != tiers.end();
}

void ReadCache(Fields& cache, DatasetSpec& dataset) {
  ReadCapacity(cache, "capacity", dataset.capacity);
  if (cache.Has("minCapacity")) ReadCapacity(cache, "minCapacity", dataset.min_capacity.emplace());
  const Capacity least = dataset.min_capacity.value_or(Capacity{});
  // A quantity and a share can be compared once the Dataset's size is known: GuaranteedOf.
  const bool above =
      (least.percent > 0) == (dataset.capacity.percent > 0) &&
      (least.percent > dataset.capacity.percent || least.bytes > dataset.capacity.bytes);
  if (above && cache.Has("capacity")) cache.Fault("minCapacity", "is above capacity: at most that");
  dataset.on_disk = ReadTiers(cache);
}

void ReadPlacement(Fields& placement, Placement& out) {
  placement.Read("nodeSelector", out.node_selector, kMaxSelector, kMaxLabel);
  if (placement.Has("maxNodes")) placement.Read("maxNodes", out.max_nodes.emplace(), 1, kMaxNodes);
  placement.Read("schedulingPreference", out.scheduling, kSchedulingPreferences);
}

void ReadAccess(Fields& spec, std::vector<std::string>& all) {
  spec.ForEach("access", kMaxAccess, [&all](Fields& item) {
    std::string ns;
    item.ReadLabel("namespace", ns);
    if (std::ranges::find(all, ns) != all.end()) item.Fault("namespace", "named twice");
    all.push_back(std::move(ns));
  });
}

void ReadSpec(Fields& spec, Place place, DatasetSpec& dataset) {
  spec.NeedIn("source",
              place == Place::kMachine ? "allowed: file, http or s3" : "allowed: s3, http or pvc",
              [&](Fields& source) {
                ReadSpan(source, "patience", dataset::ParsePatience, dataset.patience_seconds);
                dataset.source = ReadSource(source, spec, place);
              });
  spec.Read("format", dataset.format, kFormats);
  spec.Read("include", dataset.include, kMaxIncludes, kMaxPath);
  spec.In("index", [&](Fields& index) {
    ReadSpan(index, "interval", dataset::ParseIndexInterval, dataset.index_interval_seconds);
  });
  spec.Read("order", dataset.order, kOrders);
  const bool has_files =
      dataset.format == dataset::Format::kFiles || dataset.format == dataset::Format::kTarFiles;
  if (!has_files && dataset.order == dataset::Order::kImageFolder)
    spec.Fault("order", "ImageFolder numbers files in class folders, and this format has none");
  spec.Read("verify", dataset.verify, kVerifies);
  spec.In("limits", [&](Fields& limits) {
    limits.Read("requestsPerSecond", dataset.limits.requests_per_second, 1, kMaxRequests);
    limits.ReadBytes("bytesPerSecond", dataset.limits.bytes_per_second);
  });
  spec.In("cost", [&](Fields& cost) {
    ReadPrice(cost, "perRequest", dataset.price.per_request);
    ReadPrice(cost, "perGiB", dataset.price.per_gib);
  });
  spec.NeedIn("cache", "write cache: {capacity: 30%}",
              [&](Fields& cache) { ReadCache(cache, dataset); });
  spec.In("placement", [&](Fields& placement) { ReadPlacement(placement, dataset.placement); });
  ReadAccess(spec, dataset.access);
}

}  // namespace

ByteCount Capacity::Asked(ByteCount dataset_bytes) const {
  if (percent <= 0) return bytes;
  const double asked = static_cast<double>(dataset_bytes) * percent / 100;
  constexpr ByteCount kMost = std::numeric_limits<ByteCount>::max();
  return asked < static_cast<double>(kMost) ? static_cast<ByteCount>(asked) : kMost;
}

// A double does not have each size above 2^53: all is all.
ByteCount Capacity::Of(ByteCount dataset_bytes) const {
  return percent >= 100 ? dataset_bytes : std::min(Asked(dataset_bytes), dataset_bytes);
}

ByteCount DatasetSpec::GuaranteedOf(ByteCount dataset_bytes) const {
  return min_capacity ? std::min(min_capacity->Of(dataset_bytes), capacity.Of(dataset_bytes)) : 0;
}

Result<Capacity> ParseCapacity(const std::string& text) {
  if (text.ends_with('%')) {
    const auto percent = ParseDecimal(std::string_view(text).substr(0, text.size() - 1));
    // An exponent is no decimal number of a CRD.
    const bool allowed = percent && *percent > 0 && *percent <= kMaxPercent &&
                         text.find_first_of("eE") == std::string::npos;
    if (!allowed) {
      return Error(Code::kInvalidArgument, "'" + text + "', allowed: above 0% and at most 1000%");
    }
    return Capacity{.percent = *percent};
  }
  const Result<ByteCount> bytes = ParseQuantity(text);
  if (!bytes) return Error(Code::kInvalidArgument, bytes.error().message() + ", or a share as 30%");
  if (*bytes == 0)
    return Error(Code::kInvalidArgument, "0 would cache nothing, write a capacity above 0");
  return Capacity{.bytes = *bytes};
}

DatasetSpec ReadDatasetSpec(Fields& resource, Place place) {
  DatasetSpec dataset;
  resource.NeedIn("spec", "write spec: {source: …, cache: …}",
                  [&](Fields& spec) { ReadSpec(spec, place, dataset); });
  return dataset;
}

Result<DatasetSpec> ParseDatasetSpec(const nlohmann::json& object) {
  Errors errors;
  Fields resource(object, "", errors);
  DatasetSpec dataset = ReadDatasetSpec(resource, Place::kCluster);
  RETURN_IF_ERROR(errors.status());
  return dataset;
}

}  // namespace optcache::api
