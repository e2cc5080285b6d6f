#include "metrics/catalog.h"

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "support/source_dir.h"

namespace optcache::metrics {
namespace {

TEST(Catalog, NamesEachMetricOnceAndByTheConventions) {
  std::set<std::string_view> names;
  for (const Metric& metric : Catalog()) {
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
    EXPECT_FALSE(metric.help.empty()) << metric.name;
    EXPECT_EQ(metric.name.ends_with("_total"), metric.kind == MetricKind::kCounter) << metric.name;
  }
}

TEST(Catalog, StandsInTheDocumentation) {
  std::ifstream file(InRepository("docs/metrics.md"));
  std::stringstream text;
  text << file.rdbuf();
  for (const Metric& metric : Catalog()) {
    EXPECT_NE(text.str().find("`" + std::string(metric.name) + "`"), std::string::npos)
        << metric.name;
  }
}

}  // namespace
}  // namespace optcache::metrics
