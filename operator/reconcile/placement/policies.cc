#include "operator/reconcile/placement/policies.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace optcache::reconcile {
namespace {

constexpr const char* kZoneLabel = "topology.kubernetes.io/zone";

bool Concerns(const Demand& demand, const Machine& machine) {
  return demand.readers.contains(machine.member) || demand.holders.contains(machine.member);
}

template <typename F>
std::string Keep(Candidates& candidates, F&& wanted) {
  const std::size_t before = candidates.machines.size();
  std::erase_if(candidates.machines, [&](const Machine* machine) { return !wanted(*machine); });
  return fmt::format("{} of {} nodes", candidates.machines.size(), before);
}

// Those that `wanted` picks come first; otherwise the order stays.
template <typename F>
std::size_t PutFirst(Candidates& candidates, F&& wanted) {
  const auto rest = std::ranges::stable_partition(
      candidates.machines, [&](const Machine* machine) { return wanted(*machine); });
  return candidates.machines.size() - rest.size();
}

std::string NodeSelector(const Demand& demand, Candidates& candidates) {
  return Keep(candidates, [&](const Machine& machine) {
    return std::ranges::all_of(demand.node_selector, [&](const auto& wanted) {
      const auto label = machine.labels.find(wanted.first);
      return label != machine.labels.end() && label->second == wanted.second;
    });
  });
}

// Nodes that offer memory and may be given more; a cordoned one keeps what it has.
std::string Memory(const Demand& demand, Candidates& candidates) {
  return Keep(candidates, [&](const Machine& machine) {
    return machine.memory > 0 && !machine.leaving &&
           (!machine.cordoned || Concerns(demand, machine));
  });
}

std::string FreeMemory(const Demand&, Candidates& candidates) {
  const auto free = [&](const Machine* machine) {
    const auto promised = candidates.promised->find(machine->member);
    const ByteCount taken = promised == candidates.promised->end() ? 0 : promised->second;
    return machine->memory - std::min(taken, machine->memory);
  };
  std::ranges::stable_sort(candidates.machines, std::greater<>(), free);
  return "most first";
}

std::string Gpu(const Demand& demand, Candidates& candidates) {
  if (!demand.wants_gpus) return "not asked for";
  return fmt::format("{} nodes first",
                     PutFirst(candidates, [](const Machine& machine) { return machine.gpus > 0; }));
}

std::string ZoneOf(const Machine& machine) {
  const auto label = machine.labels.find(kZoneLabel);
  return label == machine.labels.end() ? "" : label->second;
}

// One zone first, since bytes between zones cost: where most of its readers are, else most holders,
// else most memory.
std::string Zone(const Demand& demand, Candidates& candidates) {
  struct Weight {
    std::size_t readers = 0;
    std::size_t holders = 0;
    ByteCount memory = 0;
    auto operator<=>(const Weight&) const = default;
  };
  std::map<std::string, Weight> zones;
  for (const Machine* machine : candidates.machines) {
    Weight& zone = zones[ZoneOf(*machine)];
    zone.readers += demand.readers.count(machine->member);
    zone.holders += demand.holders.count(machine->member);
    zone.memory += machine->memory;
  }
  if (zones.size() < 2) return "one";
  const auto best = std::ranges::max_element(
      zones, {}, [](const auto& zone) -> const Weight& { return zone.second; });
  PutFirst(candidates, [&](const Machine& machine) { return ZoneOf(machine) == best->first; });
  return best->first.empty() ? "those without one first" : best->first + " first";
}

std::string BytesThere(const Demand& demand, Candidates& candidates) {
  return fmt::format("{} nodes", PutFirst(candidates, [&](const Machine& machine) {
                       return demand.holders.contains(machine.member);
                     }));
}

std::string Readers(const Demand& demand, Candidates& candidates) {
  return fmt::format("{} nodes", PutFirst(candidates, [&](const Machine& machine) {
                       return demand.readers.contains(machine.member);
                     }));
}

constexpr auto kFilters = std::to_array<Policy>(
    {{.name = "node selector", .apply = NodeSelector}, {.name = "memory", .apply = Memory}});

constexpr auto kRankings =
    std::to_array<Policy>({{.name = "free memory", .apply = FreeMemory},
                           {.name = "GPU", .apply = Gpu},
                           {.name = "zone", .apply = Zone},
                           {.name = "bytes already there", .apply = BytesThere},
                           {.name = "readers", .apply = Readers}});

}  // namespace

std::span<const Policy> Filters() {
  return kFilters;
}

std::span<const Policy> Rankings() {
  return kRankings;
}

}  // namespace optcache::reconcile
