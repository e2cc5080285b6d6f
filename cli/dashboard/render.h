#pragma once

// `optcache dashboard`: the dashboards as pictures, from a Prometheus.

#include "cli/terminal/action.h"

namespace optcache::cli {

void AddDashboardCommand(CLI::App& app, Action& chosen);

}  // namespace optcache::cli
