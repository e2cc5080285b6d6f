#pragma once

// A piece of YAML of any shape, as kubectl would read it.

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace optcache::config {

struct YamlValue {
  using List = std::vector<YamlValue>;
  using Map = std::vector<std::pair<std::string, YamlValue>>;  // in the order of the text
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Map> value;

  template <typename T>
  const T* As() const {
    return std::get_if<T>(&value);
  }
};

// A word without quotes: null, a truth value (also y, yes, on, n, no and off), a number (0644 is
// octal, and 1_000 is 1000), or text.
YamlValue ReadYamlWord(const std::string& word);

}  // namespace optcache::config
