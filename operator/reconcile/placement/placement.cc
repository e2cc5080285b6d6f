#include "operator/reconcile/placement/placement.h"

#include <algorithm>

#include <fmt/format.h>

#include "coordination/capacity_shares.h"
#include "operator/reconcile/placement/policies.h"

namespace optcache::reconcile {
namespace {

// What the policies have left of the machines for one demand, and what they said.
struct Choice {
  Candidates candidates;
  std::string trace;
  PlacedReason reason = PlacedReason::kPlaced;
};

void Trace(std::string_view policy, const std::string& what, std::string& trace) {
  trace += fmt::format("; {}: {}", policy, what);
}

Choice Consider(const std::vector<const Machine*>& machines, const Demand& demand,
                const std::map<std::string, ByteCount>& promised) {
  Choice choice{.candidates = {.machines = machines, .promised = &promised}};
  if (machines.empty()) choice.reason = PlacedReason::kNoNodes;
  for (const Policy& filter : Filters()) {
    Trace(filter.name, filter.apply(demand, choice.candidates), choice.trace);
    if (!choice.candidates.machines.empty() || choice.reason != PlacedReason::kPlaced) continue;
    choice.reason =
        filter.name == "memory" ? PlacedReason::kNoMemory : PlacedReason::kNoMatchingNode;
  }
  for (const Policy& ranking : Rankings())
    Trace(ranking.name, ranking.apply(demand, choice.candidates), choice.trace);
  return choice;
}

// Those that would do, but others come before them.
std::string NotNeeded(const Candidates& candidates, std::size_t count) {
  std::vector<const Machine*> rest(candidates.machines.begin() + static_cast<std::ptrdiff_t>(count),
                                   candidates.machines.end());
  if (rest.empty()) return "";
  const std::size_t named = std::min(rest.size(), kMaxNamed);
  const auto by_name = [](const Machine* machine) -> const std::string& {
    return NameOf(*machine);
  };
  std::ranges::partial_sort(rest, rest.begin() + static_cast<std::ptrdiff_t>(named), {}, by_name);
  std::vector<std::string> names;
  names.reserve(named);
  for (std::size_t i = 0; i < named; ++i)
    names.push_back(NameOf(*rest[i]));
  return "; not needed: " + Listed(names, rest.size());
}

// Readers and holders, and as many more as the capacity asks for.
std::size_t HowMany(const Demand& demand, const Candidates& candidates) {
  const std::size_t limit =
      std::min<std::size_t>(candidates.machines.size(), demand.max_nodes.value_or(UINT32_MAX));
  std::size_t count = 0;
  ByteCount memory = 0;  // that is left by those placed before
  const auto left_of = [&](const Machine& machine) {
    const auto promised = candidates.promised->find(machine.member);
    const ByteCount taken = promised == candidates.promised->end() ? 0 : promised->second;
    return machine.memory - std::min(taken, machine.memory);
  };
  for (const Machine* machine : candidates.machines) {
    const bool reads = demand.readers.contains(machine->member);
    if (!reads && !demand.holders.contains(machine->member)) break;
    ++count;
    memory += left_of(*machine);
  }
  // Where bytes are already, more nodes would only take memory from those that hold them.
  const std::size_t least = count > 0 ? count : kIdleNodes;
  while (count < limit && (memory < demand.wanted || count < least)) {
    memory += left_of(*candidates.machines[count]);
    ++count;
  }
  return std::min(count, limit);
}

}  // namespace

std::string_view ToText(PlacedReason reason) {
  switch (reason) {
    case PlacedReason::kPlaced:
      return "Placed";
    case PlacedReason::kNoNodes:
      return "NoNodes";
    case PlacedReason::kNoMatchingNode:
      return "NoMatchingNode";
    case PlacedReason::kNoMemory:
      return "NoMemory";
  }
  return "";
}

std::vector<Placed> Place(std::span<const Machine> machines, std::span<const Demand> demands) {
  std::vector<Placed> all;
  std::vector<coordination::CapacityClaim> claims;
  std::map<std::string, std::size_t> index;
  std::vector<ByteCount> offers;
  std::vector<const Machine*> by_name;
  for (const Machine& machine : machines)
    by_name.push_back(&machine);
  std::ranges::sort(by_name, {}, &Machine::member);
  for (const Machine* machine : by_name) {
    index.emplace(machine->member, offers.size());
    offers.push_back(machine->memory);
  }
  std::map<std::string, ByteCount> promised;
  for (const Demand& demand : demands) {
    const Choice choice = Consider(by_name, demand, promised);
    Placed placed{.dataset = demand.dataset, .reason = choice.reason};
    const std::size_t count = HowMany(demand, choice.candidates);
    coordination::CapacityClaim claim{.dataset = demand.dataset,
                                      .floor = demand.floor,
                                      .ceiling = demand.wanted,
                                      .worth = demand.worth,
                                      .measured = demand.measured};
    for (std::size_t i = 0; i < count; ++i) {
      const std::string& member = choice.candidates.machines[i]->member;
      placed.members.push_back(member);
      claim.members.push_back(index.at(member));
      promised[member] += demand.wanted / count;
    }
    std::ranges::sort(placed.members);
    std::ranges::sort(claim.members);
    placed.message = fmt::format("{} of {} nodes{}{}", count, machines.size(), choice.trace,
                                 NotNeeded(choice.candidates, count));
    claims.push_back(std::move(claim));
    all.push_back(std::move(placed));
  }
  const auto shares = coordination::SplitByWorth(offers, claims);
  std::vector<std::string> why = coordination::ExplainShares(claims, shares);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].granted = shares[i].total;
    all[i].shares = shares[i].bytes;
    all[i].floor = demands[i].floor;
    all[i].ceiling = demands[i].wanted;
    if (demands[i].measured) {
      all[i].read = demands[i].read;
      all[i].saved = coordination::SavedBy(demands[i].worth, shares[i].total);
    }
    all[i].message += "; " + why[i];
    all[i].why = std::move(why[i]);
  }
  return all;
}

}  // namespace optcache::reconcile
