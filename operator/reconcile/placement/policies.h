#pragma once

// The policies of a placement, one function each, in the order in which they are asked. A filter
// leaves candidates out, a ranking puts some in front; both say what they did.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "operator/reconcile/placement/placement.h"

namespace optcache::reconcile {

// Of a machine's memory and disk.
struct Room {
  ByteCount memory = 0;
  ByteCount disk = 0;
};
using Promises = std::map<std::string, Room>;  // by member

// What they leave of a machine.
Room RoomOn(const Machine& machine, const Promises& promised);

// Of one Dataset, while it is being placed.
struct Candidates {
  std::vector<const Machine*> machines;  // the best first
  const Promises* promised = nullptr;    // what Datasets placed before are to get
};

using PolicyFunction = std::string (*)(const Demand& demand, Candidates& candidates);

struct Policy {
  std::string_view name;  // "node selector"
  PolicyFunction apply;   // what it did, for people: "4 of 7 nodes (node7: cordoned)"
};

// node selector, memory.
std::span<const Policy> Filters();
// free memory, GPU, zone, bytes already there, readers: each puts in front of what those before it
// did, so the last one weighs most.
std::span<const Policy> Rankings();

// Machines that a sentence names; of others it says how many they are.
inline constexpr std::size_t kMaxNamed = 5;

// "node7: cordoned, node9: no label pool, and 3 more": the first kMaxNamed of `total`.
std::string Listed(const std::vector<std::string>& first, std::size_t total);

// As people know it: the Kubernetes node, else the member.
const std::string& NameOf(const Machine& machine);

}  // namespace optcache::reconcile
