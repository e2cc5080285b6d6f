#include "metrics/metrics_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/histogram.h"

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

TEST(MetricsPage, WritesHistogramsByTheirLabels) {
  Histogram quick(std::vector<double>{0.5, 2});
  quick.Observe(1);
  MetricsPage page;
  page.Add([&](const CounterVisitor& visit) {
    quick.Visit(visit, "workqueue_work_duration_seconds", {{"name", "a"}});
    Histogram(std::vector<double>{0.5})
        .Visit(visit, "workqueue_work_duration_seconds", {{"name", "b"}});
  });
  const std::string text = page.Render();
  EXPECT_THAT(text, HasSubstr("# TYPE workqueue_work_duration_seconds histogram\n"));
  EXPECT_THAT(text,
              HasSubstr("workqueue_work_duration_seconds_count{name=\"a\"} 1\n"
                        "workqueue_work_duration_seconds_sum{name=\"a\"} 1\n"
                        "workqueue_work_duration_seconds_bucket{name=\"a\",le=\"0.5\"} 0\n"
                        "workqueue_work_duration_seconds_bucket{name=\"a\",le=\"2\"} 1\n"
                        "workqueue_work_duration_seconds_bucket{name=\"a\",le=\"+Inf\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("workqueue_work_duration_seconds_count{name=\"b\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("optcache_metrics_unknown 0\n"));
}

TEST(MetricsPage, ReportsTheProcess) {
  const std::string text = MetricsPage().Render();
  EXPECT_THAT(text, HasSubstr("process_resident_memory_bytes "));
  EXPECT_THAT(text, HasSubstr("# TYPE process_cpu_seconds_total counter\n"));
}

}  // namespace
}  // namespace optcache::metrics
