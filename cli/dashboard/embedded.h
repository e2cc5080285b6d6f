#pragma once

// The chart's dashboards, as they were when this program was built (charts/optcache/dashboards).

#include <span>
#include <string_view>

namespace optcache::cli {

struct EmbeddedDashboard {
  std::string_view name;  // of the file
  std::string_view json;
};

// By name. CMake writes the file that defines it.
std::span<const EmbeddedDashboard> EmbeddedDashboards();

}  // namespace optcache::cli
