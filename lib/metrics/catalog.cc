// Joins the parts of the catalog, and finds a metric by the name that a page shows.
//
// The idea: a part of optcache reports a number by a name alone. The page takes its kind and help
// from here. A name that is not here is counted in optcache_metrics_unknown instead of being shown.
// So a metric is added where it is counted and in one part of the catalog; the document is made
// from it. A search is linear: only a scrape asks.

#include "metrics/catalog.h"

#include <algorithm>
#include <vector>

#include "metrics/internal/catalog_parts.h"

namespace optcache::metrics {
namespace {

bool Reports(const Metric& metric, std::string_view name) {
  if (metric.kind != MetricKind::kHistogram) return metric.name == name;
  if (!name.starts_with(metric.name)) return false;
  const std::string_view part = name.substr(metric.name.size());
  return part == "_bucket" || part == "_sum" || part == "_count";
}

}  // namespace

std::span<const Section> Catalog() {
  static const auto sections = [] {
    std::vector<Section> all;
    for (const auto part : {NodeSections(), SidecarSections(), OperatorSections()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return sections;
}

const Metric* FindMetric(std::string_view name) {
  for (const Section& section : Catalog()) {
    const auto found = std::find_if(section.metrics.begin(), section.metrics.end(),
                                    [name](const Metric& metric) { return Reports(metric, name); });
    if (found != section.metrics.end()) return &*found;
  }
  return nullptr;
}

}  // namespace optcache::metrics
