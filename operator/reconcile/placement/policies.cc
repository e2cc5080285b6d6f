// Has one function for each policy, and the two tables that say in which order they are asked.
//
// A filter removes machines and names the first few with the reason. A ranking is a stable
// partition or sort, so machines that it does not tell apart keep the order of the ranking before;
// the last ranking thus weighs most. To add a policy, write its function and give it a row in a
// table.

#include "operator/reconcile/placement/policies.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace optcache::reconcile {
namespace {

constexpr const char* kZoneLabel = "topology.kubernetes.io/zone";

// `fault` says what is wrong with a machine; "" if nothing is.
template <typename F>
std::string Keep(Candidates& candidates, F&& fault) {
  const std::size_t before = candidates.machines.size();
  std::vector<std::string> left_out;
  std::erase_if(candidates.machines, [&](const Machine* machine) {
    const std::string why = fault(*machine);
    if (!why.empty() && left_out.size() < kMaxNamed)
      left_out.push_back(NameOf(*machine) + ": " + why);
    return !why.empty();
  });
  const std::size_t now = candidates.machines.size();
  std::string text = fmt::format("{} of {} nodes", now, before);
  if (now < before) text += " (" + Listed(left_out, before - now) + ")";
  return text;
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
    for (const auto& [name, value] : demand.node_selector) {
      const auto label = machine.labels.find(name);
      if (label == machine.labels.end()) return "no label " + name;
      if (label->second != value) return name + " is " + label->second;
    }
    return std::string();
  });
}

// Nodes that offer memory and may be given more. A cordoned one keeps what is read through it, and
// what it holds until it drains; then, too, if no other is there to take it.
std::string Memory(const Demand& demand, Candidates& candidates) {
  const bool others = std::ranges::any_of(candidates.machines, [](const Machine* machine) {
    return machine->memory > 0 && !machine->leaving && !machine->cordoned;
  });
  return Keep(candidates, [&](const Machine& machine) {
    const bool keeps = demand.holders.contains(machine.member) && !(machine.draining && others);
    if (machine.memory == 0) return std::string("offers none");
    if (machine.leaving) return std::string("leaving");
    if (!machine.cordoned || keeps || demand.readers.contains(machine.member)) return std::string();
    return std::string("cordoned");
  });
}

std::string FreeMemory(const Demand&, Candidates& candidates) {
  std::vector<std::pair<ByteCount, const Machine*>> free;  // once a machine, not once a comparison
  free.reserve(candidates.machines.size());
  for (const Machine* machine : candidates.machines) {
    free.emplace_back(RoomOn(*machine, *candidates.promised).memory, machine);
  }
  std::ranges::stable_sort(free, std::greater<>(), [](const auto& entry) { return entry.first; });
  std::ranges::transform(free, candidates.machines.begin(),
                         [](const auto& entry) { return entry.second; });
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

Room RoomOn(const Machine& machine, const Promises& promised) {
  const auto found = promised.find(machine.member);
  const Room taken = found == promised.end() ? Room{} : found->second;
  return {.memory = machine.memory - std::min(taken.memory, machine.memory),
          .disk = machine.disk - std::min(taken.disk, machine.disk)};
}

std::string Listed(const std::vector<std::string>& first, std::size_t total) {
  std::string text = fmt::format("{}", fmt::join(first, ", "));
  if (total > first.size()) text += fmt::format(", and {} more", total - first.size());
  return text;
}

const std::string& NameOf(const Machine& machine) {
  return machine.node.empty() ? machine.member : machine.node;
}

std::span<const Policy> Filters() {
  return kFilters;
}

std::span<const Policy> Rankings() {
  return kRankings;
}

}  // namespace optcache::reconcile
