#include "base/histogram.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace optcache {

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds.begin(), bounds.end()), counts_(bounds.size() + 1) {}

void Histogram::Observe(double value) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  ++counts_[static_cast<std::size_t>(bucket)];
  ++count_;
  sum_ += value;
}

void Histogram::Visit(const CounterVisitor& visitor, std::string_view name,
                      const MetricLabels& labels) const {
  const std::string base(name);
  MetricLabels with_bound = labels;
  with_bound.emplace_back("le", "");
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    below += counts_[i];
    with_bound.back().second = i < bounds_.size() ? fmt::format("{}", bounds_[i]) : "+Inf";
    visitor(MetricKind::kHistogram, base + "_bucket", with_bound, static_cast<double>(below));
  }
  visitor(MetricKind::kHistogram, base + "_sum", labels, sum_);
  visitor(MetricKind::kHistogram, base + "_count", labels, static_cast<double>(count_));
}

}  // namespace optcache
