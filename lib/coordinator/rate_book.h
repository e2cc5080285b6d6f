#pragma once

// Divides the limits of stores among nodes, by what the sidecars of each want.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "coordination/rate_shares.h"
#include "coordination/state.h"

namespace optcache::coordination {

// A node that is due more gets it when others have been told less, but its part of the reserve
// (kReservedShare) at once, so that its sidecars can begin. So what nodes have been told of a
// Dataset is not more than its limits together and the reserve, except for the moment after a limit
// was lowered or sidecars came. Not thread-safe: a value with one owner.
class RateBook {
 public:
  // After the first report: those who read have said so by then.
  static constexpr Duration kFirstShares = std::chrono::seconds(2);
  static constexpr Duration kDivideEvery = std::chrono::milliseconds(200);

  // The limits of a Dataset; nullopt: there is no such Dataset.
  using LimitsOf = std::function<std::optional<StoreLimits>(const std::string& dataset)>;

  // What the member wants now, all of it; returns its shares. One without a rate says that the
  // Dataset has no such limit. A Dataset of which there is nothing to tell yet is left out.
  std::vector<DatasetShare> Answer(MemberId member, const std::vector<DatasetDemand>& demands,
                                   const LimitsOf& limits_of, MonotonicTime now);
  // What the member was told is free again.
  void Forget(MemberId member);

 private:
  struct Rate {
    RateDemand demand;
    double due = 0;
    double floor = 0;  // its part of the reserve
    double told = 0;   // of the limit, which may be less than that
  };
  struct Entry {
    Rate requests;
    Rate bytes;
  };
  struct Dataset {
    StoreLimits limits;
    std::map<MemberId, Entry> members;
    MonotonicTime divided_at{};
    bool is_due = true;  // members or limits have changed since
    StoreLimits told;    // to all members together
  };
  static void Divide(double limit, Rate Entry::* rate, Dataset& dataset);
  static void Divide(Dataset& dataset, MonotonicTime now);
  static void Leave(MemberId member, Dataset& dataset);
  static double Tell(double limit, double& told_to_all, Rate& rate);

  std::optional<MonotonicTime> first_report_;
  std::map<std::string, Dataset> datasets_;
};

}  // namespace optcache::coordination
