#pragma once

// The text behind /metrics: asks each part for its numbers at each scrape (base/counters.h) and
// writes them with prometheus-cpp's serializer.

#include <functional>
#include <string>
#include <vector>

#include "base/counters.h"

namespace optcache::metrics {

// Not thread-safe: one owner, whose thread may also read the parts.
class MetricsPage {
 public:
  using Part = std::function<void(const CounterVisitor&)>;

  // `part` is called at each Render and must live as long as the page. Parts may report the same
  // metric, with other labels.
  void Add(Part part) { parts_.push_back(std::move(part)); }

  // Prometheus text format 0.0.4. Samples of one metric stand together; what is not in the catalog
  // is left out and counted in optcache_metrics_unknown.
  std::string Render() const;

 private:
  std::vector<Part> parts_;
};

// What every program reports of itself: memory, processor time, open files.
void VisitProcess(const CounterVisitor& visitor);

}  // namespace optcache::metrics
