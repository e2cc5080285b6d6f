#pragma once

// Text as it stands in a URL (RFC 3986).

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace optcache {

// Everything but letters, digits and "-._~" becomes %XX. For one step of a path, or a name or value
// of a query.
std::string PercentEncode(std::string_view text);

// As that, and slashes stay.
std::string PercentEncodePath(std::string_view path);

// Each %XX becomes its byte. kInvalidArgument: two hexadecimal digits do not follow a '%'.
Result<std::string> PercentDecode(std::string_view text);

// "a=b&c=d", names and values encoded, in the order given.
using QueryFields = std::vector<std::pair<std::string, std::string>>;
std::string QueryString(const QueryFields& query);

}  // namespace optcache
