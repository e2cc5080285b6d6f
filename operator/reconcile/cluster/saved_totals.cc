#include "operator/reconcile/cluster/saved_totals.h"

#include <utility>

namespace optcache::reconcile {

void SavedTotals::Take(const std::vector<SavedBefore>& datasets,
                       const coordination::SavingsByDataset& more) {
  std::map<std::string, Total> totals;
  for (const auto& [name, uid, saved] : datasets) {
    const auto known = totals_.find(name);
    const bool is_known = known != totals_.end() && known->second.uid == uid;
    Total& total = totals[name];
    total = {.uid = uid, .saved = is_known ? known->second.saved : saved};
    const auto found = more.find(name);
    if (found != more.end()) total.saved = Plus(total.saved, found->second);
  }
  totals_ = std::move(totals);
}

const coordination::Savings* SavedTotals::Of(const std::string& dataset) const {
  const auto found = totals_.find(dataset);
  return found == totals_.end() ? nullptr : &found->second.saved;
}

}  // namespace optcache::reconcile
