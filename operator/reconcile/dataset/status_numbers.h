#pragma once

// The numbers of a status. They move all the time while jobs read; what is written moves only when
// somebody could see the difference, so that objects at rest are not written at all.

#include "dataset/store_price.h"
#include "operator/api/dataset_status.h"
#include "operator/reconcile/dataset/observed.h"

namespace optcache::reconcile {

// Puts what `cache` says into `status`, which has what was written before: bytes that moved by less
// than a hundredth of the Dataset, and ratios that moved by less than a thousandth, stay.
void TakeNumbers(const CacheView& cache, api::DatasetStatus& status);

// Rates with three digits. They are those that memory was divided by, which stay as long as it
// does.
api::CapacityStatus CapacityOf(const Placed& placed);

// Puts what was saved in all into `status`, a minute at the earliest after it was written before.
// No number becomes less than what was written: the leader before may have known more. `now` in
// Unix seconds.
void TakeSaved(const coordination::Savings& total, const dataset::StorePrice& price, double now,
               api::DatasetStatus& status);

}  // namespace optcache::reconcile
