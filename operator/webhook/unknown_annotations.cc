#include "operator/webhook/unknown_annotations.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace optcache::webhook {
namespace {

constexpr std::string_view kPrefix = "optcache.io/";
// docs/user/annotations.md.
constexpr auto kKnown = std::to_array<std::string_view>(
    {"dataset", "keys", "claims", "pod-identity", "arena", "computed", "headspace", "s3-endpoint",
     "s3-placeholder-keys", "fallback-keys", "sampler", "resources", "containers", "optional",
     "python", "owner", "incarnation"});
// Written by the injector, and found when a pod is seen a second time.
constexpr auto kOwn = std::to_array<std::string_view>({"injected", "results"});
constexpr std::string_view kLabel = "inject";
constexpr std::size_t kMaxNearBytes = 32;
constexpr std::size_t kNear = 2;  // edits

// How many characters are put in, taken out or replaced to make one of the other (Levenshtein).
std::size_t Edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // of a's first i characters to each head of b
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::string Sentence(std::string_view name) {
  const std::string what =
      fmt::format("annotation {} is ignored: ", Quote(std::string(kPrefix) + std::string(name)));
  if (name == kLabel) return what + "write it as a label";
  if (name.size() <= kMaxNearBytes) {
    const auto near =
        std::ranges::min(kKnown, {}, [name](std::string_view known) { return Edits(name, known); });
    if (Edits(name, near) <= kNear) return fmt::format("{}is {}{} meant?", what, kPrefix, near);
  }
  return fmt::format("{}you can set {}", what, fmt::join(kKnown, ", "));
}

}  // namespace

std::vector<std::string> WarnOfUnknownAnnotations(const Json& pod) {
  std::vector<std::string> warnings;
  const Json& annotations = Member(Member(pod, "metadata"), "annotations");
  if (!annotations.is_object()) return warnings;
  for (const auto& [key, _] : annotations.items()) {
    if (!key.starts_with(kPrefix) || warnings.size() == kMaxUnknownTold) continue;
    const std::string_view name = std::string_view(key).substr(kPrefix.size());
    const bool is_known = std::ranges::find(kKnown, name) != kKnown.end() ||
                          std::ranges::find(kOwn, name) != kOwn.end();
    if (!is_known) warnings.push_back(Sentence(name));
  }
  return warnings;
}

}  // namespace optcache::webhook
