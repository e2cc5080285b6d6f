#pragma once

// What the cache has saved of each Dataset in all, also before this leader. Pure.

#include <map>
#include <string>
#include <vector>

#include "coordinator/savings_collector.h"
#include "kube/object.h"

namespace optcache::reconcile {

// A Dataset, and what its status says that was saved before.
struct SavedBefore {
  std::string name;  // "namespace/name"
  std::string uid;
  coordination::Savings saved;
};

// Are two states of a Dataset the same, but for what the status says was saved? The leader writes
// that every minute, and no plan goes by it.
bool SameButForSaved(const kube::Json& before, const kube::Json& after);

// Not thread-safe: a value with one owner.
class SavedTotals {
 public:
  // `datasets` are all that there are, `more` is what nodes have said since the last call. The
  // status counts once, when a Dataset is new here: later it is what this leader has written. What
  // nodes say of a Dataset that is gone is dropped.
  void Take(const std::vector<SavedBefore>& datasets, const coordination::SavingsByDataset& more);

  // Nothing: not known yet.
  const coordination::Savings* Of(const std::string& dataset) const;

 private:
  struct Total {
    std::string uid;
    coordination::Savings saved;
  };
  std::map<std::string, Total> totals_;  // by name
};

}  // namespace optcache::reconcile
