// Lists all metrics, part after part.
//
// The idea: a part reports a number by a name alone, and the page takes kind and help from this
// table. A name that is not here is counted in optcache_metrics_unknown instead of being shown, and
// a test compares the table with docs/metrics.md. So a metric is added in three places: where it is
// counted, here, and in the document. A search is linear: only a scrape asks.

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
