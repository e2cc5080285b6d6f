#pragma once

// The control API's values as JSON text (docs/formats/control.md). Parsing has limits (state.h),
// ignores fields it does not know, and names the field in its errors:
// kInvalidArgument "streams[2].ranks[0].rank: 9 is not below world size 8".

#include <string>
#include <string_view>

#include "base/result.h"
#include "coordination/state.h"

namespace optcache::coordination {

std::string ToJson(const Report& report);
std::string ToJson(const ReportAnswer& answer);
std::string ToJson(const Inventory& inventory);
std::string ToJson(const DesiredState& state);

Result<Report> ParseReport(std::string_view json);
Result<ReportAnswer> ParseReportAnswer(std::string_view json);
Result<Inventory> ParseInventory(std::string_view json);
Result<DesiredState> ParseDesiredState(std::string_view json);

// "3.17": term and counter, as in GET /v1/state?after=3.17.
std::string FormatVersion(const Version& version);
Result<Version> ParseVersion(std::string_view text);

// "optimal", "pin", "lru", "none" and "bytes", "requests".
std::string_view RetentionName(Retention retention);
std::string_view ObjectiveName(Objective objective);

}  // namespace optcache::coordination
