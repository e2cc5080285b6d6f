#pragma once

// A pod's annotations optcache.io/* that nothing reads, as nobody but a misspelling writes them.

#include <string>
#include <vector>

#include "operator/webhook/json_access.h"

namespace optcache::webhook {

inline constexpr std::size_t kMaxUnknownTold = 4;

// A sentence each, with the known name where one is near; at most kMaxUnknownTold.
std::vector<std::string> WarnOfUnknownAnnotations(const Json& pod);

}  // namespace optcache::webhook
