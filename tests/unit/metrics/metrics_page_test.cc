#include "metrics/metrics_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::metrics {
namespace {

using testing::HasSubstr;

TEST(MetricsPage, WritesWhatThePartsReport) {
  MetricsPage page;
  page.Add([](const CounterVisitor& visit) {
    visit(MetricKind::kCounter, "optcache_moves_total", {{"dataset", "a"}}, 3);
  });
  page.Add([](const CounterVisitor& visit) {
    visit(MetricKind::kCounter, "optcache_moves_total", {{"dataset", "b"}}, 4);
  });
  const std::string text = page.Render();
  EXPECT_THAT(text, HasSubstr("# TYPE optcache_moves_total counter\n"));
  EXPECT_THAT(text, HasSubstr("optcache_moves_total{dataset=\"a\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("optcache_moves_total{dataset=\"b\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("optcache_metrics_unknown 0\n"));
}

TEST(MetricsPage, CountsWhatItDoesNotKnow) {
  MetricsPage page;
  page.Add([](const CounterVisitor& visit) {
    visit(MetricKind::kGauge, "optcache_no_such_thing", {}, 1);
  });
  const std::string text = page.Render();
  EXPECT_THAT(text, HasSubstr("optcache_metrics_unknown 1\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("no_such_thing")));
}

TEST(MetricsPage, ReportsTheProcess) {
  const std::string text = MetricsPage().Render();
  EXPECT_THAT(text, HasSubstr("process_resident_memory_bytes "));
  EXPECT_THAT(text, HasSubstr("# TYPE process_cpu_seconds_total counter\n"));
}

}  // namespace
}  // namespace optcache::metrics
