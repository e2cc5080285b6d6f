#pragma once

#include <string>

namespace optcache::cli {

// For a flag that is a span of time (base/duration_text.h): what is wrong with it, or nothing.
std::string MustBeDuration(const std::string& text);

}  // namespace optcache::cli
