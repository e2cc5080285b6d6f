#include "cache-node/control/rate_table.h"

#include <algorithm>
#include <cstdint>

namespace optcache::node {
namespace {

using coordination::RateDemand;

constexpr double kMilli = 1000;

void AddTo(RateDemand& sum, const RateDemand& one) {
  sum.askers += one.askers;
  sum.wanted += one.wanted;
  sum.held_back += one.held_back;
}

// In parts of which a message has `parts` for one. Rounded down, but 0 would say that there is no
// limit, which is so where the `limit` is 0.
std::uint64_t WholeParts(double rate, double limit, double parts) {
  constexpr double kMost = 0x1p63;
  if (limit <= 0) return 0;
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(std::min(rate * parts, kMost)), 1);
}

}  // namespace

RateDemand RateTable::DemandOf(const Rate& rate) {
  if (rate.is_held_back || rate.wanted > kMostWanted * rate.told) return {.held_back = 1};
  return {.askers = 1, .wanted = rate.wanted};
}

std::string RateTable::NameOf(const AskerId& id, wire::DatasetKey key) const {
  for (const auto& [name, dataset] : datasets_) {
    const auto found = dataset.askers.find(id);
    if (found != dataset.askers.end() && found->second.key == key) return name;
  }
  return {};
}

bool RateTable::OnDemand(ClientId from, const std::string& pod, const std::string& dataset,
                         const wire::StoreDemand& demand) {
  const AskerId id = IdOf(from, pod);
  const std::string name = dataset.empty() ? NameOf(id, demand.dataset) : dataset;
  const bool has_room = datasets_.contains(name) || datasets_.size() < coordination::kMaxDatasets;
  if (name.empty() || !has_room) return false;
  const auto [at, is_new] = datasets_[name].askers.try_emplace(id);
  Asker& asker = at->second;
  asker.client = from;
  asker.key = demand.dataset;
  asker.requests.wanted = static_cast<double>(demand.requests_milli) / kMilli;
  asker.requests.is_held_back = demand.requests_held_back;
  asker.bytes.wanted = static_cast<double>(demand.bytes);
  asker.bytes.is_held_back = demand.bytes_held_back;
  return is_new;
}

// What the coordinator has said of a Dataset is forgotten with the last that asks for it.
template <typename Gone>
void RateTable::EraseAskers(Gone gone) {
  for (auto& [_, dataset] : datasets_)
    std::erase_if(dataset.askers, gone);
  std::erase_if(datasets_, [](const auto& one) { return one.second.askers.empty(); });
}

void RateTable::OnRefused(ClientId from, const std::string& pod, wire::DatasetKey key) {
  const AskerId id = IdOf(from, pod);
  EraseAskers([&](const auto& one) { return one.first == id && one.second.key == key; });
}

// A pod with another connection says what it wants within a second.
void RateTable::OnClosed(ClientId from) {
  EraseAskers([from](const auto& one) { return one.second.client == from; });
}

std::vector<coordination::DatasetDemand> RateTable::Report() const {
  std::vector<coordination::DatasetDemand> all;
  for (const auto& [name, dataset] : datasets_) {
    coordination::DatasetDemand& sum = all.emplace_back();
    sum.dataset = name;
    for (const auto& [_, asker] : dataset.askers) {
      AddTo(sum.requests, DemandOf(asker.requests));
      AddTo(sum.bytes, DemandOf(asker.bytes));
    }
  }
  return all;
}

void RateTable::OnShares(const std::vector<coordination::DatasetShare>& shares, MonotonicTime now) {
  for (const coordination::DatasetShare& share : shares) {
    const auto found = datasets_.find(share.dataset);
    if (found == datasets_.end()) continue;
    found->second.share = share;
    found->second.heard = now;
  }
}

void RateTable::Divide(double limit, Rate Asker::* rate, Dataset& dataset) {
  coordination::ShareRateAmong(
      limit, dataset.askers, [rate](const Asker& asker) { return DemandOf(asker.*rate); },
      [rate](Asker& asker, double share) { (asker.*rate).told = share; });
}

std::vector<RateTable::Told> RateTable::Divide(MonotonicTime now) {
  std::vector<Told> told;
  for (auto& [name, dataset] : datasets_) {
    if (dataset.share && now - dataset.heard >= kSharesLast) dataset.share.reset();
    if (!dataset.share) continue;
    const coordination::DatasetShare& share = *dataset.share;
    Divide(share.requests, &Asker::requests, dataset);
    Divide(share.bytes, &Asker::bytes, dataset);
    for (const auto& [_, asker] : dataset.askers) {
      told.push_back(
          {.to = asker.client,
           .share = {.dataset = asker.key,
                     .requests_milli = WholeParts(asker.requests.told, share.requests, kMilli),
                     .bytes = WholeParts(asker.bytes.told, share.bytes, 1)}});
    }
  }
  return told;
}

}  // namespace optcache::node
