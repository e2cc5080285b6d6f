#pragma once

#include <string>

#include "base/status.h"

namespace optcache::cli {

// To standard output, all of it; what the system says if it cannot be written.
Status Print(const std::string& text);

}  // namespace optcache::cli
