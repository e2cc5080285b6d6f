#include "cache-node/control/savings_table.h"

namespace optcache::node {

void SavingsTable::OnSavings(ClientId from, const std::string& dataset,
                             const wire::Savings& savings) {
  const coordination::Savings now = {
      .requests = savings.requests, .bytes = savings.bytes, .wait_us = savings.wait_us};
  auto& told = clients_[from];
  const auto known = told.find(savings.dataset);
  const coordination::Savings before =
      known == told.end() ? coordination::Savings{} : known->second;
  if (!IsWithinLimits(now) || now.wait_us < before.wait_us) return;
  if (known == told.end() && told.size() >= coordination::kMaxDatasets) return;
  if (!untold_.contains(dataset) && untold_.size() >= coordination::kMaxDatasets) return;
  told[savings.dataset] = now;
  if (now == before) return;
  coordination::Savings& sum = untold_[dataset];
  sum = Plus(sum, {.requests = now.requests - before.requests,
                   .bytes = now.bytes - before.bytes,
                   .wait_us = now.wait_us - before.wait_us});
}

const coordination::SavingsBatch& SavingsTable::Batch() {
  if (!batch_.datasets.empty() || untold_.empty()) return batch_;
  ++batch_.number;
  for (const auto& [dataset, saved] : untold_)
    batch_.datasets.push_back({.dataset = dataset, .saved = saved});
  untold_.clear();
  return batch_;
}

void SavingsTable::OnAnswered(std::uint64_t number) {
  if (number == batch_.number) batch_.datasets.clear();
}

}  // namespace optcache::node
