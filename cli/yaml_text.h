#pragma once

#include <string>

namespace optcache::cli {

// JSON as YAML in block style, for `--output yaml`; strings are quoted, so that they stay strings.
// `json` is our own output.
std::string ToYaml(const std::string& json);

}  // namespace optcache::cli
