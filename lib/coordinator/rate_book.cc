#include "coordinator/rate_book.h"

#include <algorithm>

namespace optcache::coordination {

void RateBook::Divide(double limit, Rate Entry::* rate, Dataset& dataset) {
  double sidecars = 0;
  for (const auto& [_, entry] : dataset.members)
    sidecars += SidecarsOf((entry.*rate).demand);
  const double floor_of_one = sidecars > 0 ? limit * kReservedShare / sidecars : 0;
  ShareRateAmong(
      limit, dataset.members, [rate](const Entry& entry) { return (entry.*rate).demand; },
      [rate, floor_of_one](Entry& entry, double share) {
        Rate& its = entry.*rate;
        its.due = share;
        its.floor = floor_of_one * SidecarsOf(its.demand);
      });
}

void RateBook::Divide(Dataset& dataset, MonotonicTime now) {
  Divide(dataset.limits.requests, &Entry::requests, dataset);
  Divide(dataset.limits.bytes, &Entry::bytes, dataset);
  dataset.divided_at = now;
  dataset.is_due = false;
  dataset.told = {};  // summed again, so that no rounding stays
  for (auto& [_, entry] : dataset.members) {
    dataset.told.requests += entry.requests.told;
    dataset.told.bytes += entry.bytes.told;
  }
}

void RateBook::Leave(MemberId member, Dataset& dataset) {
  if (dataset.members.erase(member) > 0) dataset.is_due = true;
}

// Less at once, more as far as the others leave it; its part of the reserve in any case.
double RateBook::Tell(double limit, double& told_to_all, Rate& rate) {
  const double free = std::max(limit - (told_to_all - rate.told), 0.0);
  const double next =
      rate.due <= rate.told ? rate.due : std::max(rate.told, std::min(rate.due, free));
  told_to_all += next - rate.told;
  rate.told = next;
  return std::max(next, rate.floor);
}

std::vector<DatasetShare> RateBook::Answer(MemberId member,
                                           const std::vector<DatasetDemand>& demands,
                                           const LimitsOf& limits_of, MonotonicTime now) {
  if (!first_report_) first_report_ = now;
  for (auto& [name, dataset] : datasets_) {
    const bool asks = std::ranges::find(demands, name, &DatasetDemand::dataset) != demands.end();
    if (!asks) Leave(member, dataset);
  }
  std::vector<DatasetShare> shares;
  for (const DatasetDemand& demand : demands) {
    const std::optional<StoreLimits> limits = limits_of(demand.dataset);
    if (!limits) continue;
    Dataset& dataset = datasets_[demand.dataset];
    const auto [at, is_new] = dataset.members.try_emplace(member);
    Entry& entry = at->second;
    entry.requests.demand = demand.requests;
    entry.bytes.demand = demand.bytes;
    if (is_new || *limits != dataset.limits) dataset.is_due = true;
    dataset.limits = *limits;
    if (dataset.is_due || now - dataset.divided_at >= kDivideEvery) Divide(dataset, now);
    if (*limits != StoreLimits{} && now - *first_report_ < kFirstShares) continue;
    shares.push_back({.dataset = demand.dataset,
                      .requests = Tell(limits->requests, dataset.told.requests, entry.requests),
                      .bytes = Tell(limits->bytes, dataset.told.bytes, entry.bytes)});
  }
  std::erase_if(datasets_, [](const auto& item) { return item.second.members.empty(); });
  return shares;
}

void RateBook::Forget(MemberId member) {
  for (auto& [_, dataset] : datasets_)
    Leave(member, dataset);
}

}  // namespace optcache::coordination
