#include "storage/retry_budget.h"

namespace optcache::storage {

RetryBudget::RetryBudget(RetryBudgetOptions options)
    : options_(options),
      bucket_({.capacity = options.saved_max,
               .per_second = options.floor_per_second,
               .initial = options.saved_max}) {}

void RetryBudget::OnSuccess() {
  bucket_.Add(options_.share_of_successes);
}

void RetryBudget::GiveBack() {
  bucket_.Add(1);
}

bool RetryBudget::TryTake(MonotonicTime now) {
  return bucket_.TryTake(1, now);
}

Duration RetryBudget::UntilNext(MonotonicTime now) {
  return bucket_.Until(1, now);
}

double RetryBudget::Balance(MonotonicTime now) {
  return bucket_.Balance(now);
}

}  // namespace optcache::storage
