#pragma once

#include <string>
#include <vector>

namespace optcache::cli {

// JSON as YAML in block style, for `--output yaml`; strings are quoted, so that they stay strings.
// `json` is our own output.
std::string ToYaml(const std::string& json);

// What stands in a file of several documents. A remark becomes a comment above its document,
// broken into lines at blanks, except where it begins with a blank, as a command does.
struct YamlDocument {
  std::vector<std::string> remarks;
  std::string json;
};
std::string ToYaml(const std::vector<YamlDocument>& documents);

}  // namespace optcache::cli
