// Places Datasets one after the other, and then divides the memory of all machines at once.
//
//   for each demand:   filters ─► rankings ─► HowMany ─► promises (what it is to get of a machine)
//   for all together:  disks at most ─► SplitByMarginalBenefit (memory) ─► disks beside that memory
//   ─► why
//
// Promises make a later Dataset prefer machines that earlier ones leave free. They decide where it
// goes and on how many machines, but not how much it gets. How much is decided by worth, over all
// Datasets (capacity/capacity_shares.h). Disks are split twice: first to know what memory need
// not cover, then for what memory has not given. Machines are sorted by member first, so the result
// does not depend on the order in which they are listed.

#include "operator/reconcile/placement/placement.h"

#include <algorithm>

#include <fmt/format.h>

#include "capacity/capacity_shares.h"
#include "capacity/capacity_split.h"
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
                const Promises& promised) {
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
  ByteCount room = 0;  // that is left by those placed before
  const auto left_of = [&](const Machine& machine) {
    const Room left = RoomOn(machine, *candidates.promised);
    return demand.on_disk ? left.memory + left.disk : left.memory;
  };
  for (const Machine* machine : candidates.machines) {
    const bool reads = demand.readers.contains(machine->member);
    if (!reads && !demand.holders.contains(machine->member)) break;
    ++count;
    room += left_of(*machine);
  }
  // Where bytes are already, more nodes would only take memory from those that hold them.
  const std::size_t least = count > 0 ? count : kIdleNodes;
  while (count < limit && (room < demand.wanted || count < least)) {
    room += left_of(*candidates.machines[count]);
    ++count;
  }
  return std::min(count, limit);
}

// Its part of one machine: of memory; if it may lie on disk, only what no disk is left for.
Room PartOf(const Demand& demand, ByteCount part, const Room& left) {
  if (!demand.on_disk) return {.memory = part};
  const ByteCount disk = std::min(part, left.disk);
  return {.memory = part - disk, .disk = disk};
}

// Members by their place in `machines`, counted from 1, as SplitCapacity wants them.
std::vector<coordination::Member> MembersOf(const std::vector<const Machine*>& machines) {
  std::vector<coordination::Member> members;
  for (const Machine* machine : machines) {
    members.push_back({.id = static_cast<coordination::MemberId>(members.size() + 1),
                       .capacity = machine->memory,
                       .disk = machine->disk});
  }
  return members;
}

// What each would get of its members' disks, where `memory` says what it has of their memory. As
// the coordinator divides them.
std::vector<ByteCount> DisksOf(const std::vector<const Machine*>& machines,
                               std::span<const Demand> demands,
                               std::span<const coordination::CapacityClaim> claims,
                               const std::vector<std::vector<ByteCount>>& memory) {
  if (std::ranges::none_of(demands, &Demand::on_disk)) return std::vector<ByteCount>(claims.size());
  std::vector<coordination::CapacityWish> wishes;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    coordination::CapacityWish& wish = wishes.emplace_back();
    wish.members.emplace();
    for (const std::size_t member : claims[i].members)
      wish.members->push_back(static_cast<coordination::MemberId>(member + 1));
    wish.shares = memory[i];
    if (demands[i].on_disk) wish.with_disk = demands[i].wanted;
  }
  std::vector<ByteCount> disks;
  for (const auto& shares : coordination::SplitCapacity(MembersOf(machines), wishes)) {
    ByteCount& sum = disks.emplace_back(0);
    for (const coordination::MemberCapacity& share : shares)
      sum += share.disk;
  }
  return disks;
}

// What memory saves of a Dataset of which so much lies on disk anyway.
std::vector<coordination::MarginalBenefit> BeyondDisk(
    const std::vector<coordination::MarginalBenefit>& benefit, ByteCount disk) {
  std::vector<coordination::MarginalBenefit> beyond;
  for (const coordination::MarginalBenefit& piece : benefit) {
    if (piece.until > disk) beyond.push_back({.until = piece.until - disk, .slope = piece.slope});
  }
  if (beyond.empty() && !benefit.empty()) beyond.push_back({.until = benefit.back().until});
  return beyond;
}

std::string OnDiskText(ByteCount disk) {
  if (disk == 0) return "; none on disk, as its nodes offer none or memory has room for it";
  return fmt::format("; {} of it on disk", FormatBytes(disk));
}

// Of the memory alone, for Datasets that may lie on disk.
std::vector<coordination::CapacityClaim> OfMemory(
    std::span<const coordination::CapacityClaim> claims, std::span<const Demand> demands,
    const std::vector<ByteCount>& disks) {
  std::vector<coordination::CapacityClaim> of_memory(claims.begin(), claims.end());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (disks[i] == 0) continue;
    coordination::CapacityClaim& claim = of_memory[i];
    const ByteCount least =
        std::min(kMemoryBesideDisk * claim.members.size(), demands[i].wanted / 8);
    claim.guaranteed = std::max(claim.guaranteed - std::min(disks[i], claim.guaranteed), least);
    claim.benefit = BeyondDisk(claim.benefit, disks[i]);
  }
  return of_memory;
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
  Promises promised;
  for (const Demand& demand : demands) {
    const Choice choice = Consider(by_name, demand, promised);
    Placed placed{.dataset = demand.dataset, .reason = choice.reason};
    const std::size_t count = HowMany(demand, choice.candidates);
    coordination::CapacityClaim claim{.dataset = demand.dataset,
                                      .guaranteed = demand.guaranteed,
                                      .maximum = demand.wanted,
                                      .benefit = demand.benefit,
                                      .measured = demand.measured};
    for (std::size_t i = 0; i < count; ++i) {
      const std::string& member = choice.candidates.machines[i]->member;
      placed.members.push_back(member);
      claim.members.push_back(index.at(member));
      const Room part =
          PartOf(demand, demand.wanted / count, RoomOn(*choice.candidates.machines[i], promised));
      promised[member].memory += part.memory;
      promised[member].disk += part.disk;
    }
    std::ranges::sort(placed.members);
    std::ranges::sort(claim.members);
    placed.message = fmt::format("{} of {} nodes{}{}", count, machines.size(), choice.trace,
                                 NotNeeded(choice.candidates, count));
    claims.push_back(std::move(claim));
    all.push_back(std::move(placed));
  }
  std::vector<std::vector<ByteCount>> memory;
  for (const coordination::CapacityClaim& claim : claims)
    memory.emplace_back(claim.members.size(), 0);
  const auto at_most = DisksOf(by_name, demands, claims, memory);
  std::vector<coordination::CapacityShare> shares =
      coordination::SplitByMarginalBenefit(offers, OfMemory(claims, demands, at_most));
  for (std::size_t i = 0; i < shares.size(); ++i)
    memory[i] = shares[i].bytes;
  const auto disks = DisksOf(by_name, demands, claims, memory);
  for (std::size_t i = 0; i < shares.size(); ++i)
    shares[i].total += disks[i];
  std::vector<std::string> why = coordination::ExplainShares(claims, shares);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].granted = shares[i].total;
    all[i].on_disk = disks[i];
    all[i].shares = shares[i].bytes;
    all[i].guaranteed = demands[i].guaranteed;
    all[i].maximum = demands[i].wanted;
    if (demands[i].measured) {
      all[i].read = demands[i].read;
      all[i].saved = coordination::SavedBy(demands[i].benefit, shares[i].total);
    }
    if (demands[i].on_disk) why[i] += OnDiskText(disks[i]);
    all[i].message += "; " + why[i];
    all[i].why = std::move(why[i]);
  }
  return all;
}

}  // namespace optcache::reconcile
