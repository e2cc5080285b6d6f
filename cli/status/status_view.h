#pragma once

// The cluster's status for people: datasets, nodes, streams in one screen.

#include <string>

#include "coordination/status.h"

namespace optcache::cli {

// Pure; ends with a newline. `savings` is a table of cli/status/savings.h.
std::string FormatStatus(const coordination::ClusterStatus& status,
                         const std::string& savings = "");

// One line, for a log: "nodes 2, streams 1, hits 29.8 % (predicted 30.0 %), ...".
std::string FormatStatusLine(const coordination::ClusterStatus& status);

}  // namespace optcache::cli
