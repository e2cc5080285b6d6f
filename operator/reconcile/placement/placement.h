#pragma once

// Which nodes hold which Dataset. Named policies in order, each of which filters, ranks or shares;
// the decision says for people what each of them has done. Pure: same machines and wishes, same
// placement.
//
//   node selector ─ memory ─┬─ readers, bytes already there, zone, GPU ─┬─
//   coordination::SplitByMarginalBenefit
//          who can hold it  │            who shall                      │  how much
//
// A plan keeps samples where they are read next, and what finds no room there at nodes that have
// some to spare. So a Dataset lies on its readers' nodes, where its bytes are, and on as many more
// as its capacity asks for.
//
// What may lie on disk gets of the disks first, in proportion to what is asked of each, and memory
// for what it has no disk for; of the memory that nobody else has a use for it gets the rest, and
// its share of the disks shrinks by that.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "capacity/saved_bytes.h"

namespace optcache::reconcile {

// A node of the cache, and the machine that it runs on.
struct Machine {
  std::string member;  // the coordinator's name of it: its pod's
  std::string node;    // the Kubernetes node
  std::map<std::string, std::string> labels;
  ByteCount memory = 0;  // payload bytes that it offers
  ByteCount disk = 0;    // and on its disk
  std::uint64_t gpus = 0;
  bool cordoned = false;  // gets nothing new
  bool draining = false;  // cordoned for long: it gives up what is not read through it
  bool leaving = false;   // its pod or machine is going: it gives up what it has
};

// What one Dataset asks for.
struct Demand {
  std::string dataset;       // "namespace/name"
  ByteCount wanted = 0;      // at most
  ByteCount guaranteed = 0;  // before others get what they save more by; at most `wanted`
  std::vector<coordination::MarginalBenefit> benefit;  // of its memory; empty: no job reads it
  double read = 0;                                     // bytes a second
  bool measured = true;                                // some of its rates; else all are assumed
  std::map<std::string, std::string> node_selector;
  std::optional<std::uint32_t> max_nodes;
  bool on_disk = false;           // what memory has no room for may lie on disk
  bool wants_gpus = false;        // its jobs ask for GPUs
  std::set<std::string> readers;  // members through which ranks read it
  std::set<std::string> holders;  // members that hold bytes of it, or are being filled with them
};

enum class PlacedReason { kPlaced, kNoNodes, kNoMatchingNode, kNoMemory };
std::string_view ToText(PlacedReason reason);  // "NoMatchingNode"

struct Placed {
  std::string dataset;
  std::vector<std::string> members;  // ascending; empty: nowhere
  std::vector<ByteCount> shares;     // of the memory of each of them
  ByteCount granted = 0;             // of all members together, memory and disk
  ByteCount on_disk = 0;             // so much of that
  ByteCount guaranteed = 0;
  ByteCount maximum = 0;
  double read = 0;   // bytes a second, as memory was divided by it; 0: nobody, or not known
  double saved = 0;  // of those the store need not deliver
  std::string why;   // it is so much: "1.2 GiB of 4 GiB: saves 35 MiB/s"
  PlacedReason reason = PlacedReason::kNoNodes;
  std::string message;  // what each policy did

  // All that it asked for, which is divided in whole bytes.
  bool HasAll() const { return granted + members.size() >= maximum; }
  friend bool operator==(const Placed&, const Placed&) = default;
};

// Nodes that a Dataset gets at least while no job reads it.
inline constexpr std::size_t kIdleNodes = 3;

// Memory of each of its nodes that goes to a Dataset which may lie on disk, whatever else is read:
// all its samples arrive there. Never more than an eighth of what it asks for.
inline constexpr ByteCount kMemoryBesideDisk = 64_MiB;

// One for each demand, in their order.
std::vector<Placed> Place(std::span<const Machine> machines, std::span<const Demand> demands);

}  // namespace optcache::reconcile
