#include "sidecar/prefetch/name_claims.h"

#include <algorithm>

#include <fmt/format.h>

namespace optcache::sidecar {

bool SameJob(const NameClaim& a, const NameClaim& b) {
  if (a.process == b.process) return true;
  if (a.rank == b.rank || a.job != b.job) return false;
  // Ranks of a known job whose worlds differ are a mistake that they are to be told of.
  return !a.job.empty() || a.world == b.world;
}

std::string NameFor(const NameClaim& newcomer, std::span<const NameClaim> others) {
  const auto free = [&](std::string_view name) {
    return std::ranges::none_of(others, [&](const NameClaim& other) {
      return other.name == name && !SameJob(newcomer, other);
    });
  };
  for (const NameClaim& other : others) {
    if (other.asked == newcomer.asked && SameJob(newcomer, other) && free(other.name)) {
      return std::string(other.name);
    }
  }
  std::string name(newcomer.asked);
  for (unsigned number = 2; !free(name); ++number)
    name = fmt::format("{}-{}", newcomer.asked, number);
  return name;
}

}  // namespace optcache::sidecar
