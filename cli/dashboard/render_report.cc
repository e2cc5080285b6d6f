#include "cli/dashboard/render_report.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace optcache::cli {
namespace {

using Json = nlohmann::json;

Json ToJson(const RenderedTarget& target) {
  return {{"ref", target.ref},
          {"query", target.query},
          {"series", target.series},
          {"points", target.points}};
}

Json ToJson(const Panel& panel, const RenderedPanel& rendered) {
  Json targets = Json::array();
  for (const RenderedTarget& target : rendered.targets)
    targets.push_back(ToJson(target));
  return {{"id", panel.id},
          {"title", panel.title},
          {"type", PanelKindName(panel.kind)},
          {"unit", panel.unit},
          {"file", rendered.file},
          {"empty", rendered.empty()},
          {"targets", std::move(targets)}};
}

}  // namespace

bool RenderedPanel::empty() const {
  return std::ranges::all_of(targets, [](const RenderedTarget& t) { return t.points == 0; });
}

std::string PanelFileName(const Dashboard& dashboard, const Panel& panel) {
  std::string slug;
  for (const char c : panel.title) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (plain) {
      slug += c;
    } else if (c >= 'A' && c <= 'Z') {
      slug += static_cast<char>(c - 'A' + 'a');
    } else if (!slug.empty() && slug.back() != '-') {
      slug += '-';
    }
  }
  constexpr std::size_t kSlugMax = 60;
  slug.resize(std::min(slug.size(), kSlugMax));
  if (slug.ends_with('-')) slug.pop_back();
  return fmt::format("{}/{:02}-{}.svg", dashboard.uid, panel.id, slug);
}

std::string ReportAsJson(const std::vector<RenderedDashboard>& dashboards, const TimeRange& range) {
  Json list = Json::array();
  for (const RenderedDashboard& each : dashboards) {
    Json panels = Json::array();
    for (std::size_t i = 0; i < each.panels.size(); ++i)
      panels.push_back(ToJson(each.dashboard.panels[i], each.panels[i]));
    list.push_back({{"uid", each.dashboard.uid},
                    {"title", each.dashboard.title},
                    {"file", each.file},
                    {"panels", std::move(panels)}});
  }
  const Json report{{"from", range.from},
                    {"to", range.to},
                    {"step", range.step},
                    {"dashboards", std::move(list)}};
  return report.dump(2) + "\n";
}

std::vector<std::string> EmptyPanels(const std::vector<RenderedDashboard>& dashboards) {
  std::vector<std::string> empty;
  for (const RenderedDashboard& each : dashboards) {
    for (std::size_t i = 0; i < each.panels.size(); ++i) {
      if (each.panels[i].empty())
        empty.push_back(
            fmt::format("{} / {}", each.dashboard.title, each.dashboard.panels[i].title));
    }
  }
  return empty;
}

std::string ReportAsText(const std::vector<RenderedDashboard>& dashboards,
                         const std::string& folder) {
  std::string text;
  for (const RenderedDashboard& each : dashboards) {
    text += fmt::format("{}/{}: {} panels, each also in {}/{}/\n", folder, each.file,
                        each.panels.size(), folder, each.dashboard.uid);
  }
  const std::vector<std::string> empty = EmptyPanels(dashboards);
  if (!empty.empty()) text += fmt::format("{} panels have no data:\n", empty.size());
  for (const std::string& panel : empty)
    text += "  " + panel + "\n";
  return text;
}

}  // namespace optcache::cli
