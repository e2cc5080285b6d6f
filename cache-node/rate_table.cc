#include "cache-node/rate_table.h"

#include <algorithm>
#include <cstdint>

namespace optcache::node {
namespace {

using coordination::RateDemand;

constexpr double kMilli = 1000;

RateDemand DemandOf(double wanted, bool is_held_back) {
  if (is_held_back) return {.held_back = 1};
  return {.askers = 1, .wanted = wanted};
}

void AddTo(RateDemand& sum, const RateDemand& one) {
  sum.askers += one.askers;
  sum.wanted += one.wanted;
  sum.held_back += one.held_back;
}

// In parts of which a message has `parts` for one. Rounded down, but 0 would say that there is no
// limit.
std::uint64_t WholeParts(double rate, double parts) {
  constexpr double kMost = 0x1p63;
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(std::min(rate * parts, kMost)), 1);
}

// `limit` 0: there is none.
std::vector<std::uint64_t> SharesOf(double limit, const std::vector<RateDemand>& demands,
                                    double parts) {
  std::vector<std::uint64_t> shares(demands.size(), 0);
  if (limit <= 0) return shares;
  std::ranges::transform(coordination::ShareRate(limit, demands), shares.begin(),
                         [parts](double share) { return WholeParts(share, parts); });
  return shares;
}

}  // namespace

bool RateTable::OnDemand(ClientId from, const std::string& dataset,
                         const wire::StoreDemand& demand) {
  if (!datasets_.contains(dataset) && datasets_.size() >= coordination::kMaxDatasets) return false;
  const Demand now = {.requests = DemandOf(static_cast<double>(demand.requests_milli) / kMilli,
                                           demand.requests_held_back),
                      .bytes = DemandOf(static_cast<double>(demand.bytes), demand.bytes_held_back)};
  return datasets_[dataset].askers.insert_or_assign({from, demand.dataset}, now).second;
}

// What the coordinator has said of a Dataset is forgotten with the last that asks for it.
void RateTable::OnClosed(ClientId from) {
  for (auto& [_, dataset] : datasets_)
    std::erase_if(dataset.askers, [from](const auto& one) { return one.first.first == from; });
  std::erase_if(datasets_, [](const auto& one) { return one.second.askers.empty(); });
}

std::vector<coordination::DatasetDemand> RateTable::Report() const {
  std::vector<coordination::DatasetDemand> all;
  for (const auto& [name, dataset] : datasets_) {
    coordination::DatasetDemand& sum = all.emplace_back();
    sum.dataset = name;
    for (const auto& [_, demand] : dataset.askers) {
      AddTo(sum.requests, demand.requests);
      AddTo(sum.bytes, demand.bytes);
    }
  }
  return all;
}

void RateTable::OnShares(const std::vector<coordination::DatasetShare>& shares) {
  for (const coordination::DatasetShare& share : shares) {
    const auto found = datasets_.find(share.dataset);
    if (found != datasets_.end()) found->second.share = share;
  }
}

std::vector<RateTable::Told> RateTable::Divide() const {
  std::vector<Told> told;
  for (const auto& [_, dataset] : datasets_) {
    if (!dataset.share) continue;
    std::vector<RateDemand> requests;
    std::vector<RateDemand> bytes;
    for (const auto& [asker, demand] : dataset.askers) {
      requests.push_back(demand.requests);
      bytes.push_back(demand.bytes);
    }
    const auto of_requests = SharesOf(dataset.share->requests, requests, kMilli);
    const auto of_bytes = SharesOf(dataset.share->bytes, bytes, 1);
    std::size_t i = 0;
    for (const auto& [asker, demand] : dataset.askers) {
      told.push_back(
          {.to = asker.first,
           .share = {
               .dataset = asker.second, .requests_milli = of_requests[i], .bytes = of_bytes[i]}});
      ++i;
    }
  }
  return told;
}

}  // namespace optcache::node
