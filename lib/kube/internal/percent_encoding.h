#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace optcache::kube {

// RFC 3986: everything but unreserved characters becomes %XX. For one step of a path, or a name or
// value of a query.
std::string PercentEncode(std::string_view text);

// "?a=b&c=d", or "" if there is nothing.
std::string QueryString(const std::vector<std::pair<std::string, std::string>>& query);

}  // namespace optcache::kube
