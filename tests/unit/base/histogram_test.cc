#include "base/histogram.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace optcache {
namespace {

std::map<std::string, double> Visited(const Histogram& histogram) {
  std::map<std::string, double> numbers;
  histogram.Visit(
      [&](MetricKind kind, std::string_view name, const MetricLabels& labels, double value) {
        EXPECT_EQ(kind, MetricKind::kHistogram);
        std::string key(name);
        for (const auto& [label, text] : labels)
          key += " " + label + "=" + text;
        numbers[key] = value;
      },
      "wait_seconds", {{"name", "a"}});
  return numbers;
}

TEST(Histogram, CountsWhatIsAtOrBelowEachBound) {
  Histogram histogram(std::vector<double>{0.5, 2});
  for (const double value : {0.1, 0.5, 1.0, 7.0})
    histogram.Observe(value);
  EXPECT_EQ(Visited(histogram), (std::map<std::string, double>{
                                    {"wait_seconds_bucket name=a le=0.5", 2},
                                    {"wait_seconds_bucket name=a le=2", 3},
                                    {"wait_seconds_bucket name=a le=+Inf", 4},
                                    {"wait_seconds_sum name=a", 8.6},
                                    {"wait_seconds_count name=a", 4},
                                }));
}

TEST(Histogram, IsAllZeroesAtFirst) {
  const Histogram histogram(kSecondsBounds);
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(Visited(histogram).at("wait_seconds_bucket name=a le=+Inf"), 0);
}

}  // namespace
}  // namespace optcache
