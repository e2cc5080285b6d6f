#include "config/internal/resources.h"

namespace optcache::config::internal {
namespace {

void ReadSource(YamlMap& spec, Dataset& dataset) {
  if (!spec.Has("source")) return spec.Fail("source", "missing, allowed: file or http");
  spec.In("source", [&](YamlMap& source) {
    for (const char* kind : {"s3", "pvc"}) {
      if (source.Has(kind)) {
        source.Fail(kind, "not supported by this version, which reads file and http");
      }
    }
    source.In("file",
              [&](YamlMap& file) { file.Need("path", dataset.file.emplace().path, "a folder"); });
    source.In("http", [&](YamlMap& http) {
      HttpSource& out = dataset.http.emplace();
      http.Need("baseURL", out.base_url, "http://… or https://…");
      http.Read("listing", out.listing);
      if (http.Has("secretRef"))
        http.Fail("secretRef",
                  "names a Secret of a cluster; on one machine servers are read without");
      if (!out.base_url.starts_with("http://") && !out.base_url.starts_with("https://")) {
        http.Fail("baseURL", "'" + out.base_url + "', allowed: http://… or https://…");
      }
    });
  });
  if (dataset.file.has_value() == dataset.http.has_value()) {
    spec.Fail("source", "needs exactly one of file and http");
  }
}

void ReadPlacement(YamlMap& spec, Placement& out) {
  spec.In("placement", [&](YamlMap& placement) {
    placement.Read("nodeSelector", out.node_selector);
    placement.Read("maxNodes", out.max_nodes, 1, 100000);
    placement.Read("schedulingPreference",
                   {{"Preferred", SchedulingPreference::kPreferred},
                    {"Required", SchedulingPreference::kRequired},
                    {"None", SchedulingPreference::kNone}},
                   out.scheduling_preference);
  });
}

void ReadAccess(YamlMap& spec, std::vector<Access>& out) {
  spec.ForEach("access", [&](YamlMap& item) {
    Access& access = out.emplace_back();
    item.ReadLabel("namespace", access.name_space);
    item.In("secretRef", [&](YamlMap& secret) { secret.NeedSubdomain("name", access.secret); });
    if (item.Has("claimName")) item.NeedSubdomain("claimName", access.claim);
  });
}

}  // namespace

Dataset ReadDataset(YamlMap& document) {
  Dataset dataset;
  ReadMetadata(document, dataset.name, dataset.name_space);
  if (!document.Has("spec")) document.Fail("spec", "missing, write spec: {source: …, cache: …}");
  document.In("spec", [&](YamlMap& spec) {
    ReadSource(spec, dataset);
    std::string format = "Files";
    spec.Read("format", format);
    if (format != "Files") {
      spec.Fail("format", "'" + format + "' is not supported by this version, allowed: Files");
    }
    spec.Read("include", dataset.include);
    Order order = Order::kPath;
    spec.Read(
        "order",
        {{"ImageFolder", Order::kImageFolder}, {"Path", Order::kPath}, {"List", Order::kList}},
        order);
    if (spec.Has("order")) dataset.order = order;
    spec.Read("verify", {{"Checksum", Verify::kChecksum}, {"Digest", Verify::kDigest}},
              dataset.verify);
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
