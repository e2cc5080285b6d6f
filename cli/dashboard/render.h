#pragma once

// `optcache dashboard`: the dashboards as pictures, from a Prometheus.

#include "cli/terminal/verb.h"

namespace optcache::cli {

void AddDashboardCommand(CLI::App& app, Verb& chosen);

}  // namespace optcache::cli
