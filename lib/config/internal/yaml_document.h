#pragma once

// Text into YAML documents, within limits.

#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "base/result.h"

namespace optcache::config::internal {

// "demo.yaml:9: " and what follows.
Status ErrorAt(std::string_view file, const YAML::Mark& mark, std::string_view what);

// Empty documents are left out. kInvalidArgument as ParseConfiguration says.
Result<std::vector<YAML::Node>> LoadDocuments(std::string_view text, std::string_view file);

}  // namespace optcache::config::internal
