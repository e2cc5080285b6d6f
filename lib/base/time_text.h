#pragma once

// Times as RFC 3339 in UTC, as the API of Kubernetes writes them.

#include <optional>
#include <string>
#include <string_view>

namespace optcache {

// metav1.Time, to the second: "2027-01-15T08:00:00Z". `unix_seconds` as of Clock::UnixSeconds.
std::string FormatTime(double unix_seconds);
// metav1.MicroTime, of Leases and Events: "2027-01-15T08:00:00.000000Z".
std::string FormatMicroTime(double unix_seconds);
// Either, also with an offset instead of Z. Nothing if it is neither.
std::optional<double> ParseTime(std::string_view text);

}  // namespace optcache
