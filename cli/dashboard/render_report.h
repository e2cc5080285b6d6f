#pragma once

// What `optcache dashboard render` has drawn, for people and for programs. Pure.

#include <string>
#include <vector>

#include "cli/dashboard/dashboard_file.h"
#include "cli/dashboard/panel_picture.h"

namespace optcache::cli {

struct RenderedTarget {
  std::string ref;
  std::string query;  // as Prometheus was asked
  std::size_t series = 0;
  std::size_t points = 0;
};

struct RenderedPanel {
  std::vector<RenderedTarget> targets;
  std::string file;  // relative to the output folder
  PanelData data;

  bool empty() const;
};

struct RenderedDashboard {
  Dashboard dashboard;
  std::string file;
  std::vector<RenderedPanel> panels;  // in the order of the dashboard's
};

// The name of a panel's file: "optcache-nodes/07-load-balance.svg".
std::string PanelFileName(const Dashboard& dashboard, const Panel& panel);

// {"dashboards": [{uid, title, file, panels: [{id, title, type, unit, file, empty,
// targets: [{ref, query, series, points}]}]}]}
std::string ReportAsJson(const std::vector<RenderedDashboard>& dashboards, const TimeRange& range);

// A line a dashboard, and the panels that have no data.
std::string ReportAsText(const std::vector<RenderedDashboard>& dashboards,
                         const std::string& folder);

// "Dashboard / Panel" of those without data.
std::vector<std::string> EmptyPanels(const std::vector<RenderedDashboard>& dashboards);

}  // namespace optcache::cli
