// Nodes' shares of the limits of stores: they go into the answer to a report, not into the desired
// state, since they change each second and no plan depends on them.

#include "coordinator/coordinator.h"

namespace optcache::coordination {

std::vector<DatasetShare> Coordinator::ShareRates(const Report& report, MemberId member,
                                                  MonotonicTime now) {
  if (learning_) return {};  // who else reads is not known yet
  return rates_.Answer(
      member, report.demands,
      [this](const std::string& dataset) -> std::optional<StoreLimits> {
        const DatasetEntry* const present = Present(dataset);
        if (present == nullptr) return std::nullopt;
        return present->spec.limits;
      },
      now);
}

}  // namespace optcache::coordination
