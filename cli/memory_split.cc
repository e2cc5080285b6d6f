#include "cli/memory_split.h"

#include <algorithm>

#include "coordination/capacity_shares.h"

namespace optcache::cli {
namespace {

using coordination::ClusterReads;
using coordination::DatasetSpec;

std::vector<coordination::Worth> WorthOf(const DatasetSpec& spec, const ClusterReads& reads) {
  const auto found = reads.find(spec.name);
  if (found == reads.end()) return {};
  return coordination::WorthOf(found->second, spec.bytes, spec.retention);
}

}  // namespace

MemorySplit::MemorySplit(std::vector<WantedDataset> wanted) : wanted_(std::move(wanted)) {
  for (const WantedDataset& dataset : wanted_)
    served_.push_back(dataset.spec);
}

std::vector<DatasetSpec> MemorySplit::Divide(ByteCount memory, const ClusterReads& reads) const {
  std::vector<coordination::CapacityClaim> claims;
  for (const auto& [spec, floor] : wanted_) {
    const auto found = reads.find(spec.name);
    claims.push_back({.dataset = spec.name,
                      .floor = floor,
                      .ceiling = std::min(spec.capacity, spec.bytes),
                      .worth = WorthOf(spec, reads),
                      .measured = found != reads.end() && IsMeasured(found->second),
                      .members = {0}});
  }
  const auto shares = coordination::SplitByWorth(std::vector{memory}, claims);
  const std::vector<std::string> why = coordination::ExplainShares(claims, shares);
  std::vector<DatasetSpec> specs;
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    DatasetSpec& spec = specs.emplace_back(wanted_[i].spec);
    if (shares[i].total == claims[i].ceiling) continue;
    spec.note = why[i];
    spec.capacity = shares[i].total;
  }
  return specs;
}

double MemorySplit::Saved(const std::vector<DatasetSpec>& specs, const ClusterReads& reads) const {
  double saved = 0;
  for (const DatasetSpec& spec : specs)
    saved += coordination::SavedBy(WorthOf(spec, reads), spec.capacity);
  return saved;
}

std::optional<std::vector<DatasetSpec>> MemorySplit::Update(
    const coordination::ClusterStatus& status, MonotonicTime now) {
  ByteCount memory = 0;
  for (const coordination::MemberStatus& member : status.members)
    memory += member.capacity;
  if (memory == 0) return std::nullopt;  // nobody is there yet
  reads_.Observe(coordination::ReadsOf(status), now);
  reads_.SettleIfWorthwhile(now, [&](const ClusterReads& rates) {
    return coordination::SettledReads::Savings{.then = Saved(Divide(memory, rates), rates),
                                               .now = Saved(served_, rates)};
  });
  std::vector<DatasetSpec> specs = Divide(memory, reads_.in_force());
  if (specs == served_) return std::nullopt;
  served_ = std::move(specs);
  return served_;
}

}  // namespace optcache::cli
