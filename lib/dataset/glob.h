#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace optcache::dataset {

inline constexpr size_t kGlobsMax = 64;
inline constexpr size_t kGlobBytesMax = 1024;

// Patterns that choose objects by their whole relative path. `*` stands for any bytes but a slash,
// `?` for one such byte, `**` as a whole component for any number of components, also none:
// `**/*.jpg` matches `a.jpg` and `train/x/b.jpg`. Upper and lower case differ; nothing else is
// special and nothing can be escaped. Thread-safe: nothing changes it.
class GlobSet {
 public:
  // kInvalidArgument: more than kGlobsMax patterns, an empty or too long one, one with a leading
  // slash, or `**` as part of a component, which would not mean what it looks like.
  static Result<GlobSet> Compile(std::vector<std::string> patterns);

  bool empty() const { return patterns_.empty(); }
  // True if any pattern matches; false for an empty set. Takes at most
  // (length of path) x (length of patterns) steps.
  bool Matches(std::string_view path) const;

 private:
  using Components = std::vector<std::string>;
  std::vector<Components> patterns_;
};

}  // namespace optcache::dataset
