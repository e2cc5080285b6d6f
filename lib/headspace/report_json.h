#pragma once

// The page /headspace of a sidecar: docs/formats/headspace.md.

#include <string>
#include <string_view>

#include "base/result.h"
#include "headspace/report.h"

namespace optcache::headspace {

std::string ReportAsJson(const Report& report);
// kInvalidArgument: it is no such page. Fields that are not known are passed over.
Result<Report> ParseReport(std::string_view json);

}  // namespace optcache::headspace
