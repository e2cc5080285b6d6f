#include "config/internal/resources.h"

namespace optcache::config::internal {
namespace {

void ReadS3(YamlMap& s3, S3Source& out) {
  s3.Need("bucket", out.bucket, "the name of a bucket");
  s3.Read("prefix", out.prefix);
  s3.Read("endpoint", out.endpoint);
  s3.Read("region", out.region);
  s3.Read("requesterPays", out.requester_pays);
  s3.Read("listing", out.listing);
  if (out.listing.starts_with('/'))
    s3.Fail("listing", "keys do not begin with a slash: leave it out");
  s3.Read("style", {{"Path", std::string("path")}, {"VirtualHost", std::string("virtual")}},
          out.style);
  for (const char* field : {"secretRef", "roleARN", "stsEndpoint"}) {
    if (s3.Has(field)) {
      s3.Fail(field,
              "is of a cluster; on one machine leave it out: the variables AWS_ACCESS_KEY_ID, "
              "AWS_SECRET_ACCESS_KEY and so on say the keys, or `--keys NAME=FOLDER`");
    }
  }
  if (!out.endpoint.empty() && !out.endpoint.starts_with("http://") &&
      !out.endpoint.starts_with("https://")) {
    s3.Fail("endpoint", "'" + out.endpoint + "', allowed: http://… or https://…");
  }
}

template <typename Span>
void ReadSpan(YamlMap& map, std::string_view field, Result<Duration> (*parse)(std::string_view),
              Span& out) {
  std::string text;
  map.Read(field, text);
  if (!map.Has(field)) return;
  const Result<Duration> span = parse(text);
  if (!span) return map.Fail(field, span.error().message());
  out = *span;
}

void ReadSource(YamlMap& spec, Dataset& dataset) {
  if (!spec.Has("source")) return spec.Fail("source", "missing, allowed: file, http or s3");
  spec.In("source", [&](YamlMap& source) {
    if (source.Has("pvc")) {
      source.Fail("pvc", "is a volume of a cluster; on one machine write file: {path: …}");
    }
    ReadSpan(source, "patience", dataset::ParsePatience, dataset.patience);
    source.In("s3", [&](YamlMap& s3) { ReadS3(s3, dataset.s3.emplace()); });
    source.In("file",
              [&](YamlMap& file) { file.Need("path", dataset.file.emplace().path, "a folder"); });
    source.In("http", [&](YamlMap& http) {
      HttpSource& out = dataset.http.emplace();
      http.Need("baseURL", out.base_url, "http://… or https://…");
      http.Read("listing", out.listing);
      if (http.Has("secretRef"))
        http.Fail("secretRef",
                  "names a Secret of a cluster; on one machine leave it out and give `--keys "
                  "NAME=FOLDER`");
      if (!out.base_url.starts_with("http://") && !out.base_url.starts_with("https://")) {
        http.Fail("baseURL", "'" + out.base_url + "', allowed: http://… or https://…");
      }
    });
  });
  const int sources =
      int{dataset.file.has_value()} + int{dataset.http.has_value()} + int{dataset.s3.has_value()};
  if (sources != 1) spec.Fail("source", "needs exactly one of file, http and s3");
}

void ReadPrice(YamlMap& cost, std::string_view field, double& out) {
  if (!cost.Has(field)) return;
  std::string text;
  cost.Read(field, text);
  const Result<double> price = dataset::ParsePrice(text);
  if (!price) return cost.Fail(field, price.error().message());
  out = *price;
}

void ReadPlacement(YamlMap& spec, Placement& out) {
  spec.In("placement", [&](YamlMap& placement) {
    placement.Read("nodeSelector", out.node_selector);
    placement.Read("maxNodes", out.max_nodes, 1, 100000);
    placement.Read("schedulingPreference", api::kSchedulingPreferences, out.scheduling);
  });
}

void ReadAccess(YamlMap& spec, std::vector<std::string>& out) {
  spec.ForEach("access", [&](YamlMap& item) { item.ReadLabel("namespace", out.emplace_back()); });
}

}  // namespace

Dataset ReadDataset(YamlMap& document) {
  Dataset dataset;
  ReadMetadata(document, dataset.name, dataset.name_space);
  if (!document.Has("spec")) document.Fail("spec", "missing, write spec: {source: …, cache: …}");
  document.In("spec", [&](YamlMap& spec) {
    ReadSource(spec, dataset);
    spec.Read("format", api::kFormats, dataset.format);
    spec.Read("include", dataset.include);
    spec.In("index", [&](YamlMap& index) {
      ReadSpan(index, "interval", dataset::ParseIndexInterval, dataset.index_interval);
    });
    dataset::Order order = dataset::Order::kPath;
    spec.Read("order", api::kOrders, order);
    if (spec.Has("order")) dataset.order = order;
    const bool has_files =
        dataset.format == dataset::Format::kFiles || dataset.format == dataset::Format::kTarFiles;
    if (!has_files && dataset.order == dataset::Order::kImageFolder)
      spec.Fail("order", "ImageFolder numbers files in class folders, and this format has none");
    spec.Read("verify", api::kVerifies, dataset.verify);
    spec.In("limits", [&](YamlMap& limits) {
      limits.Read("requestsPerSecond", dataset.limits.requests_per_second, 1, 1'000'000);
      limits.Read("bytesPerSecond", dataset.limits.bytes_per_second);
    });
    spec.In("cost", [&](YamlMap& cost) {
      ReadPrice(cost, "perRequest", dataset.price.per_request);
      ReadPrice(cost, "perGiB", dataset.price.per_gib);
    });
    if (!spec.Has("cache")) spec.Fail("cache", "missing, write cache: {capacity: 30%}");
    spec.In("cache", [&](YamlMap& cache) {
      cache.Need("capacity", dataset.capacity);
      if (cache.Has("minCapacity")) cache.Need("minCapacity", dataset.min_capacity.emplace());
      const Capacity least = dataset.min_capacity.value_or(Capacity{});
      const bool alike = (least.percent > 0) == (dataset.capacity.percent > 0);
      if (alike &&
          (least.percent > dataset.capacity.percent || least.bytes > dataset.capacity.bytes))
        cache.Fail("minCapacity", "is above capacity: at most that");
      cache.Read("tiers", {{"Memory", Tier::kMemory}, {"Disk", Tier::kDisk}}, dataset.tiers);
    });
    ReadPlacement(spec, dataset.placement);
    ReadAccess(spec, dataset.access);
  });
  return dataset;
}

}  // namespace optcache::config::internal
