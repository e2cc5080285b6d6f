#pragma once

// A report of headspace for people.

#include <string>

#include "headspace/report.h"

namespace optcache::cli {

std::string HeadspaceAsTable(const headspace::Report& report);

// The what-if curve as SVG.
std::string DrawHeadspace(const headspace::Report& report);

}  // namespace optcache::cli
