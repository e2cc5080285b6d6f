#include "coordinator/savings_collector.h"

#include <algorithm>
#include <utility>

namespace optcache::coordination {

bool SavingsCollector::Take(const Report& report) {
  const SavingsBatch& batch = report.savings;
  if (batch.number == 0) return false;
  Heard& heard = nodes_[report.node];
  if (heard.incarnation == report.incarnation && batch.number <= heard.number) return false;
  heard = {.incarnation = report.incarnation, .number = batch.number, .turn = ++turns_};
  if (nodes_.size() > kMaxNodes) ForgetOldest();
  for (const auto& [dataset, saved] : batch.datasets) {
    if (!collected_.contains(dataset) && collected_.size() >= kMaxDatasets) continue;
    if (IsWithinLimits(saved)) collected_[dataset] = Plus(collected_[dataset], saved);
  }
  return true;
}

SavingsByDataset SavingsCollector::Collect() {
  return std::exchange(collected_, {});
}

void SavingsCollector::ForgetOldest() {
  nodes_.erase(
      std::ranges::min_element(nodes_, {}, [](const auto& node) { return node.second.turn; }));
}

}  // namespace optcache::coordination
