// A dashboard file and what a Prometheus answers: refused, or drawn.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cli/dashboard/dashboard_file.h"
#include "cli/dashboard/panel_picture.h"
#include "cli/dashboard/prometheus.h"

namespace optcache::cli {
namespace {

constexpr TimeRange kRange{.from = 0, .to = 600, .step = 10};

PanelData DataOf(std::string_view body, const std::string& legend) {
  PanelData data;
  auto answer = ParseAnswer(200, body);
  if (!answer) return data;
  for (PrometheusSeries& series : *answer) {
    data.series.push_back({.name = FillLegend(legend, series.labels),
                           .labels = std::move(series.labels),
                           .points = std::move(series.points)});
  }
  return data;
}

// A zero byte stands between the two.
void Draw(std::string_view text) {
  const std::size_t zero = std::min(text.find('\0'), text.size());
  const std::string_view body = zero < text.size() ? text.substr(zero + 1) : std::string_view();
  const auto dashboard = ParseDashboard(text.substr(0, zero), "fuzz");
  if (!dashboard) return;
  std::vector<PanelData> data;
  for (const Panel& panel : dashboard->panels) {
    for (const PanelTarget& target : panel.targets)
      (void)FillQuery(target.query, {{"node", {.values = {"a.b"}}}}, {});
    data.push_back(DataOf(body, panel.targets.front().legend));
  }
  const std::string page = DrawDashboardPage(*dashboard, data, kRange, "");
  CHECK(page.starts_with("<svg ") && page.ends_with("</svg>\n"));
}

}  // namespace
}  // namespace optcache::cli

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes as text
  optcache::cli::Draw({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
