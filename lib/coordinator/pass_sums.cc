#include "coordinator/pass_sums.h"

#include <algorithm>
#include <utility>

namespace optcache::coordination {
namespace {

std::pair<StreamId, PassNumber> KeyOf(const PassReport& pass) {
  return {pass.stream, pass.pass};
}

void Add(const PassReport& from, PassReport& to) {
  to.hits += from.hits;
  to.peer_hits += from.peer_hits;
  to.misses += from.misses;
  to.miss_bytes += from.miss_bytes;
  to.moved_bytes += from.moved_bytes;
  to.planned_reads += from.planned_reads;
  to.planned_misses += from.planned_misses;
  to.planned_miss_bytes += from.planned_miss_bytes;
  to.planned_moved_bytes += from.planned_moved_bytes;
}

}  // namespace

void AddUp(std::vector<PassReport>& passes) {
  std::ranges::sort(passes, {}, KeyOf);
  std::size_t sums = 0;
  for (const PassReport& pass : passes) {
    if (sums != 0 && KeyOf(passes[sums - 1]) == KeyOf(pass)) {
      Add(pass, passes[sums - 1]);
    } else {
      passes[sums++] = pass;
    }
  }
  passes.resize(sums);
}

void KeepLatest(std::vector<PassReport>& passes) {
  std::vector<PassReport> latest;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const std::size_t later = i + kPassesReported;
    if (later >= passes.size() || passes[later].stream != passes[i].stream)
      latest.push_back(passes[i]);
  }
  passes = std::move(latest);
}

}  // namespace optcache::coordination
