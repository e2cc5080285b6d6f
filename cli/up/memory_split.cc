#include "cli/up/memory_split.h"

#include <algorithm>

#include <fmt/format.h>

#include "capacity/capacity_shares.h"
#include "capacity/capacity_split.h"

namespace optcache::cli {
namespace {

using coordination::ClusterReads;
using coordination::DatasetSpec;

std::vector<coordination::MarginalBenefit> MarginalBenefitOf(const DatasetSpec& spec,
                                                             const ClusterReads& reads) {
  const auto found = reads.find(spec.name);
  if (found == reads.end()) return {};
  return coordination::MarginalBenefitOf(found->second, spec.bytes, spec.retention);
}

// What each gets of the disks, where `memory` says what it has of the memory. As the coordinator
// divides them.
std::vector<ByteCount> DisksOf(const std::vector<coordination::Member>& members,
                               const std::vector<WantedDataset>& wanted,
                               const std::vector<coordination::CapacityShare>& memory) {
  std::vector<coordination::CapacityWish> wishes;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    wishes.push_back({.bytes = memory[i].total, .with_disk = wanted[i].spec.with_disk});
  std::vector<ByteCount> disks;
  for (const auto& shares : coordination::SplitCapacity(members, wishes)) {
    ByteCount& sum = disks.emplace_back(0);
    for (const coordination::MemberCapacity& share : shares)
      sum += share.disk;
  }
  return disks;
}

}  // namespace

MemorySplit::MemorySplit(std::vector<WantedDataset> wanted) : wanted_(std::move(wanted)) {
  for (const WantedDataset& dataset : wanted_)
    served_.push_back(dataset.spec);
}

std::vector<DatasetSpec> MemorySplit::Divide(const std::vector<coordination::Member>& members,
                                             const ClusterReads& reads) const {
  ByteCount memory = 0;
  for (const coordination::Member& member : members)
    memory += member.capacity;
  std::vector<coordination::CapacityClaim> claims;
  for (const auto& [spec, guaranteed] : wanted_) {
    const auto found = reads.find(spec.name);
    claims.push_back({.dataset = spec.name,
                      .guaranteed = guaranteed,
                      .maximum = std::min(spec.capacity, spec.bytes),
                      .benefit = MarginalBenefitOf(spec, reads),
                      .measured = found != reads.end() && IsMeasured(found->second),
                      .members = {0}});
  }
  const auto shares = coordination::SplitByMarginalBenefit(std::vector{memory}, claims);
  const std::vector<ByteCount> disks = DisksOf(members, wanted_, shares);
  auto with_disks = shares;
  for (std::size_t i = 0; i < shares.size(); ++i)
    with_disks[i].total += disks[i];
  const std::vector<std::string> why = coordination::ExplainShares(claims, with_disks);
  std::vector<DatasetSpec> specs;
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    DatasetSpec& spec = specs.emplace_back(wanted_[i].spec);
    if (shares[i].total == claims[i].maximum) continue;
    spec.capacity = shares[i].total;
    // Parts of members are rounded down.
    if (with_disks[i].total + 2 * members.size() >= claims[i].maximum) continue;
    spec.note = why[i];
    if (disks[i] > 0) spec.note += fmt::format("; {} of it on disk", FormatBytes(disks[i]));
  }
  return specs;
}

double MemorySplit::Saved(const std::vector<DatasetSpec>& specs, const ClusterReads& reads) const {
  double saved = 0;
  for (const DatasetSpec& spec : specs)
    saved += coordination::SavedBy(MarginalBenefitOf(spec, reads), spec.capacity);
  return saved;
}

std::optional<std::vector<DatasetSpec>> MemorySplit::Update(
    const coordination::ClusterStatus& status, MonotonicTime now) {
  std::vector<coordination::Member> members;
  for (const coordination::MemberStatus& member : status.members)
    members.push_back({.id = member.id, .capacity = member.capacity, .disk = member.disk});
  if (std::ranges::all_of(members, [](const auto& m) { return m.capacity == 0; }))
    return std::nullopt;  // nobody is there yet
  reads_.Observe(coordination::ReadsOf(status), now);
  reads_.SettleIfWorthwhile(now, [&](const ClusterReads& rates) {
    return coordination::SettledReads::Savings{.then = Saved(Divide(members, rates), rates),
                                               .now = Saved(served_, rates)};
  });
  std::vector<DatasetSpec> specs = Divide(members, reads_.in_force());
  if (specs == served_) return std::nullopt;
  served_ = std::move(specs);
  return served_;
}

}  // namespace optcache::cli
