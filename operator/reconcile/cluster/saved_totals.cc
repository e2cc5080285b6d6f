#include "operator/reconcile/cluster/saved_totals.h"

#include <utility>

namespace optcache::reconcile {
namespace {

kube::Json WithoutSaved(kube::Json dataset) {
  for (const char* written : {"resourceVersion", "managedFields"})
    dataset["metadata"].erase(written);
  if (dataset.contains("status")) dataset["status"].erase("saved");
  return dataset;
}

}  // namespace

bool SameButForSaved(const kube::Json& before, const kube::Json& after) {
  return WithoutSaved(before) == WithoutSaved(after);
}

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
