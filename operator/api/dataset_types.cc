// Reads a Dataset's spec, one function for each part of it.
//
// Fields collects every fault with its path, so one error tells all of them. A field that is
// missing keeps the default of its type. Limits here are those of the CRD: an API server of an
// older version does not enforce all of them, so they are checked again. Names of enumerators stand
// in tables.

#include "operator/api/dataset_types.h"

#include <array>
#include <charconv>
#include <cmath>

#include "dataset/index_interval.h"
#include "dataset/patience.h"
#include "operator/api/fields.h"

namespace optcache::api {
namespace {

// Those of the CRD.
constexpr std::size_t kMaxName = 253;
constexpr std::size_t kMaxUrl = 2048;
constexpr std::size_t kMaxPath = 1024;
constexpr std::size_t kMaxQuantity = 32;
constexpr std::int64_t kMaxRequests = 1'000'000;  // a second
constexpr std::size_t kMaxIncludes = 64;
constexpr std::size_t kMaxSelector = 32;
constexpr std::size_t kMaxLabel = 63;
constexpr std::size_t kMaxAccess = 64;
constexpr std::size_t kMaxTiers = 2;
constexpr std::int64_t kMaxNodes = 100'000;
constexpr double kMaxPercent = 1000;

constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kStyles{
    {{"Path", "path"}, {"VirtualHost", "virtual"}}};

template <typename Enum, std::size_t n>
std::span<const std::pair<std::string_view, Enum>> AllOf(
    const std::array<std::pair<std::string_view, Enum>, n>& values) {
  return values;
}

bool IsUrl(const std::string& text) {
  return text.starts_with("http://") || text.starts_with("https://");
}

bool StaysInside(const std::string& path) {
  if (path.starts_with('/')) return false;
  const std::string framed = "/" + path + "/";
  return framed.find("/../") == std::string::npos;
}

std::string SecretOf(Fields fields) {
  std::string name;
  if (fields.Has("secretRef")) fields.In("secretRef").Need("name", kMaxName, name);
  return name;
}

S3Source ReadS3(Fields fields) {
  S3Source source;
  dataset::S3Location& place = source.place;
  fields.Need("bucket", kMaxLabel, place.bucket);
  fields.Read("prefix", kMaxPath, place.prefix);
  fields.Read("endpoint", kMaxUrl, place.endpoint);
  fields.Read("region", kMaxLabel, place.region);
  std::string_view style;
  fields.Read("style", AllOf(kStyles), style);
  place.style = style;
  fields.Read("requesterPays", place.requester_pays);
  fields.Read("listing", kMaxPath, place.listing);
  fields.Read("roleARN", kMaxUrl, place.role_arn);
  fields.Read("stsEndpoint", kMaxUrl, place.sts_endpoint);
  source.secret = SecretOf(fields);
  for (const auto& [name, url] :
       {std::pair{"endpoint", place.endpoint}, std::pair{"stsEndpoint", place.sts_endpoint}}) {
    if (!url.empty() && !IsUrl(url)) fields.Fault(name, "allowed: https://… or http://…");
  }
  if (place.role_arn.empty() && !place.sts_endpoint.empty())
    fields.Fault("stsEndpoint", "for roleARN alone, which is missing");
  return source;
}

HttpSource ReadHttp(Fields fields) {
  HttpSource source;
  fields.Need("baseURL", kMaxUrl, source.base_url);
  fields.Read("listing", kMaxPath, source.listing);
  source.secret = SecretOf(fields);
  if (!source.base_url.empty() && !IsUrl(source.base_url))
    fields.Fault("baseURL", "allowed: https://… or http://…");
  return source;
}

ClaimSource ReadClaim(Fields fields) {
  ClaimSource source;
  fields.Need("claimName", kMaxName, source.claim);
  fields.Read("path", kMaxPath, source.path);
  if (!StaysInside(source.path))
    fields.Fault("path", "a path inside the volume, without / at its begin and without ..");
  return source;
}

Source ReadSource(Fields fields, Fields& spec) {
  if (fields.Has("file")) {
    spec.Fault("source",
               "file is a folder of one machine, for `optcache up` alone: in a cluster use s3, "
               "http or pvc");
    return HttpSource{};
  }
  const int count = int{fields.Has("s3")} + int{fields.Has("http")} + int{fields.Has("pvc")};
  if (count != 1) {
    spec.Fault("source", "needs exactly one of s3, http and pvc");
    return HttpSource{};
  }
  if (fields.Has("s3")) return ReadS3(fields.In("s3"));
  if (fields.Has("http")) return ReadHttp(fields.In("http"));
  return ReadClaim(fields.In("pvc"));
}

// A span of time in seconds; 0 where there is none.
std::int64_t ReadSpan(Fields fields, const char* name,
                      Result<Duration> (*parse)(std::string_view)) {
  std::string text;
  fields.Read(name, kMaxQuantity, text);
  if (text.empty()) return 0;
  const Result<Duration> span = parse(text);
  if (!span) {
    fields.Fault(name, span.error().message());
    return 0;
  }
  return std::chrono::duration_cast<std::chrono::seconds>(*span).count();
}

std::optional<Capacity> ReadCapacity(Fields& fields, const char* name) {
  std::string text;
  fields.ReadIntOrText(name, kMaxQuantity, text);
  if (text.empty()) return std::nullopt;
  const Result<Capacity> capacity = ParseCapacity(text);
  if (!capacity) fields.Fault(name, capacity.error().message());
  return capacity.value_or(Capacity{});
}

// True: disk, too. Memory is always one of them, as all samples arrive there.
bool ReadTiers(Fields& fields) {
  std::vector<std::string> tiers;
  fields.Read("tiers", kMaxTiers, kMaxLabel, tiers);
  for (const std::string& tier : tiers) {
    if (tier != "Memory" && tier != "Disk")
      fields.Fault("tiers", "\"" + tier + "\" is not known, allowed: Memory, Disk");
  }
  return std::ranges::find(tiers, "Disk") != tiers.end();
}

Limits ReadLimits(Fields fields) {
  Limits limits;
  fields.Read("requestsPerSecond", 1, kMaxRequests, limits.requests_per_second);
  std::string text;
  fields.ReadIntOrText("bytesPerSecond", kMaxQuantity, text);
  if (text.empty()) return limits;
  const Result<ByteCount> bytes = ParseQuantity(text);
  if (!bytes) fields.Fault("bytesPerSecond", bytes.error().message());
  if (bytes && *bytes == 0) fields.Fault("bytesPerSecond", "must be above 0");
  limits.bytes_per_second = bytes.value_or(0);
  return limits;
}

double ReadPrice(Fields& fields, const char* name) {
  std::string text;
  fields.ReadIntOrText(name, dataset::kPriceCharactersMax, text);
  if (text.empty()) return 0;
  const Result<double> price = dataset::ParsePrice(text);
  if (!price) fields.Fault(name, price.error().message());
  return price.value_or(0);
}

dataset::StorePrice ReadCost(Fields fields) {
  return {.per_request = ReadPrice(fields, "perRequest"), .per_gib = ReadPrice(fields, "perGiB")};
}

void ReadCache(Fields fields, DatasetSpec& dataset) {
  const std::optional<Capacity> capacity = ReadCapacity(fields, "capacity");
  if (!capacity) fields.Fault("capacity", "missing");
  dataset.capacity = capacity.value_or(Capacity{});
  dataset.min_capacity = ReadCapacity(fields, "minCapacity");
  dataset.on_disk = ReadTiers(fields);
  if (!dataset.min_capacity) return;
  const Capacity& least = *dataset.min_capacity;
  // A quantity and a share can be compared once the Dataset's size is known: GuaranteedOf.
  const bool above = (least.share > 0) == (dataset.capacity.share > 0) &&
                     (least.share > dataset.capacity.share || least.bytes > dataset.capacity.bytes);
  if (above) fields.Fault("minCapacity", "is above capacity: at most that");
}

Placement ReadPlacement(Fields fields) {
  Placement placement;
  fields.Read("nodeSelector", kMaxSelector, kMaxLabel, placement.node_selector);
  std::int64_t max_nodes = 0;
  fields.Read("maxNodes", 1, kMaxNodes, max_nodes);
  if (max_nodes > 0) placement.max_nodes = static_cast<std::uint32_t>(max_nodes);
  fields.Read("schedulingPreference", AllOf(kSchedulingPreferences), placement.scheduling);
  return placement;
}

std::vector<std::string> ReadAccess(Fields& spec) {
  std::vector<std::string> all;
  spec.ForEach("access", kMaxAccess, [&all](Fields fields) {
    std::string ns;
    fields.Need("namespace", kMaxLabel, ns);
    if (std::ranges::find(all, ns) != all.end()) fields.Fault("namespace", "named twice");
    all.push_back(std::move(ns));
  });
  return all;
}

}  // namespace

std::string AddressOf(const S3Source& source, const std::string& token_file) {
  dataset::S3Location place = source.place;
  if (source.web_identity()) place.token_file = token_file;
  return dataset::AddressOf(place);
}

std::string AddressWithoutRole(const S3Source& source) {
  dataset::S3Location place = source.place;
  place.role_arn.clear();
  place.sts_endpoint.clear();
  return dataset::AddressOf(place);
}

ByteCount Capacity::Of(ByteCount dataset_bytes) const {
  if (share <= 0) return std::min(bytes, dataset_bytes);
  const double wanted = std::floor(std::min(share, 1.0) * static_cast<double>(dataset_bytes));
  return static_cast<ByteCount>(wanted);
}

ByteCount DatasetSpec::GuaranteedOf(ByteCount dataset_bytes) const {
  if (!min_capacity) return 0;
  return std::min(min_capacity->Of(dataset_bytes), capacity.Of(dataset_bytes));
}

Result<Capacity> ParseCapacity(const std::string& text) {
  if (!text.ends_with('%')) {
    ASSIGN_OR_RETURN(const ByteCount bytes, ParseQuantity(text));
    if (bytes == 0) return Error(Code::kInvalidArgument, "must be above 0");
    return Capacity{.bytes = bytes};
  }
  double percent = 0;
  const char* const end = text.data() + text.size() - 1;
  const auto [stop, error] = std::from_chars(text.data(), end, percent, std::chars_format::fixed);
  if (error != std::errc() || stop != end || !(percent > 0) || percent > kMaxPercent) {
    return Error(Code::kInvalidArgument,
                 "\"" + text + "\": allowed: above 0% and at most 1000% of the Dataset");
  }
  return Capacity{.share = percent / 100};
}

Result<DatasetSpec> ParseDatasetSpec(const kube::Json& object) {
  ValidationErrors validation_errors;
  Fields spec(kube::Find(object, "/spec"), "spec", validation_errors);
  DatasetSpec dataset;
  dataset.source = ReadSource(spec.In("source"), spec);
  dataset.patience_seconds = ReadSpan(spec.In("source"), "patience", dataset::ParsePatience);
  spec.Read("format", AllOf(kFormats), dataset.format);
  spec.Read("include", kMaxIncludes, kMaxPath, dataset.include);
  dataset.index_interval_seconds =
      ReadSpan(spec.In("index"), "interval", dataset::ParseIndexInterval);
  dataset::Order order = dataset::Order::kPath;
  spec.Read("order", AllOf(kOrders), order);
  if (spec.Has("order")) dataset.order = order;
  spec.Read("verify", AllOf(kVerifies), dataset.verify);
  dataset.limits = ReadLimits(spec.In("limits"));
  dataset.price = ReadCost(spec.In("cost"));
  ReadCache(spec.In("cache"), dataset);
  dataset.placement = ReadPlacement(spec.In("placement"));
  dataset.access = ReadAccess(spec);
  const bool has_files =
      dataset.format == dataset::Format::kFiles || dataset.format == dataset::Format::kTarFiles;
  if (!has_files && dataset.order == dataset::Order::kImageFolder) {
    spec.Fault("order", "ImageFolder numbers files in class folders, and this format has none");
  }
  RETURN_IF_ERROR(validation_errors.status());
  return dataset;
}

}  // namespace optcache::api
