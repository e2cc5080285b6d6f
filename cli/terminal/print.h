#pragma once

#include <string>

#include "base/status.h"

namespace optcache::cli {

// To standard output, all of it; what the system says if it cannot be written.
// On a terminal, what comes from outside stands there visibly and is not obeyed.
Status Print(const std::string& text);
// One of the two, by `output`: text, json or yaml (of the JSON).
Status PrintAs(const std::string& output, const std::string& text, const std::string& json);

}  // namespace optcache::cli
