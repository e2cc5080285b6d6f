#include "dataset/glob.h"

#include <optional>

#include <fmt/format.h>

namespace optcache::dataset {
namespace {

constexpr std::string_view kAnyComponents = "**";

std::vector<std::string> Split(std::string_view path) {
  std::vector<std::string> components;
  while (true) {
    const size_t slash = path.find('/');
    components.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return components;
    path.remove_prefix(slash + 1);
  }
}

// Matches a sequence against a pattern with stars. It is enough to remember the last star: what an
// earlier one could swallow in addition, the later one can too, so there is no exponential search.
template <typename Pattern, typename Text, typename IsStar, typename Equal>
bool MatchesWithStars(const Pattern& pattern, const Text& text, IsStar is_star, Equal equal) {
  struct Star {
    size_t pattern_next;
    size_t text_next;
  };
  size_t p = 0;
  size_t t = 0;
  std::optional<Star> star;
  while (t < text.size()) {
    if (p < pattern.size() && is_star(pattern[p])) {
      star = Star{++p, t};
    } else if (p < pattern.size() && equal(pattern[p], text[t])) {
      ++p;
      ++t;
    } else if (star) {
      p = star->pattern_next;
      t = ++star->text_next;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && is_star(pattern[p]))
    ++p;
  return p == pattern.size();
}

bool ComponentMatches(std::string_view pattern, std::string_view component) {
  return MatchesWithStars(
      pattern, component, [](char c) { return c == '*'; },
      [](char expected, char c) { return expected == '?' || expected == c; });
}

Status CheckPattern(const std::string& pattern) {
  const auto bad = [&](std::string_view why) {
    return Status(Code::kInvalidArgument, fmt::format("pattern \"{}\" {}", pattern, why));
  };
  if (pattern.empty()) return bad("is empty");
  if (pattern.size() > kGlobBytesMax) {
    return bad(fmt::format("has more than {} bytes", kGlobBytesMax));
  }
  if (pattern.front() == '/') return bad("begins with a slash; paths are relative to the source");
  for (const std::string& component : Split(pattern)) {
    if (component != kAnyComponents && component.find(kAnyComponents) != std::string::npos) {
      return bad("has \"**\" beside other characters; write it between slashes, as in **/*.jpg");
    }
  }
  return OkStatus();
}

}  // namespace

Result<GlobSet> GlobSet::Compile(std::vector<std::string> patterns) {
  if (patterns.size() > kGlobsMax) {
    return Error(Code::kInvalidArgument,
                 fmt::format("{} patterns; the limit is {}", patterns.size(), kGlobsMax));
  }
  GlobSet set;
  for (const std::string& pattern : patterns) {
    RETURN_IF_ERROR(CheckPattern(pattern));
    set.patterns_.push_back(Split(pattern));
  }
  return set;
}

bool GlobSet::Matches(std::string_view path) const {
  const std::vector<std::string> components = Split(path);
  for (const Components& pattern : patterns_) {
    if (MatchesWithStars(
            pattern, components, [](const std::string& c) { return c == kAnyComponents; },
            ComponentMatches)) {
      return true;
    }
  }
  return false;
}

}  // namespace optcache::dataset
