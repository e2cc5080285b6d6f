#include "cli/local/dataset_name.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace optcache::cli {

Result<std::size_t> PlaceOfDataset(const std::vector<std::string>& names, std::string_view word) {
  std::vector<std::string_view> candidates;
  std::size_t place = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string_view name = names[i];
    if (name == word) return i;
    if (name.substr(name.find('/') + 1) != word) continue;
    candidates.push_back(name);
    place = i;
  }
  if (candidates.size() == 1) return place;
  if (candidates.empty()) {
    return Error(Code::kNotFound,
                 fmt::format("there is no dataset {}; {}", word,
                             names.empty() ? "the cache has no dataset yet"
                                           : fmt::format("there are: {}", fmt::join(names, ", "))));
  }
  return Error(
      Code::kInvalidArgument,
      fmt::format("several datasets have the name {}: {}. Write one with its namespace, for "
                  "example {}",
                  word, fmt::join(candidates, ", "), candidates.front()));
}

}  // namespace optcache::cli
