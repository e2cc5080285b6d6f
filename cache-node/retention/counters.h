#pragma once

// What a node has done for one dataset since it started. Names and meaning: docs/metrics.md.

#include <cstdint>

namespace optcache::node {

struct Counters {
  // Reads answered to sidecars, by answer.
  std::uint64_t hits_local = 0;
  std::uint64_t hits_peer = 0;
  std::uint64_t misses = 0;
  std::uint64_t on_its_way = 0;  // told to ask again
  std::uint64_t hit_bytes_local = 0;
  std::uint64_t hit_bytes_peer = 0;
  std::uint64_t miss_bytes = 0;
  std::uint64_t hits_spare = 0;  // of samples that the plan had given up, by other nodes, too
  std::uint64_t hits_disk = 0;   // of the local hits: from the disk
  std::uint64_t hit_bytes_disk = 0;
  // The same reads as far as a plan covers them, as it had predicted them.
  std::uint64_t predicted_local = 0;
  std::uint64_t predicted_peer = 0;
  std::uint64_t predicted_misses = 0;
  std::uint64_t predicted_bytes_local = 0;
  std::uint64_t predicted_bytes_peer = 0;
  std::uint64_t predicted_miss_bytes = 0;
  std::uint64_t predicted_moved_bytes = 0;  // to be pushed from here after what was read
  // And as they were answered.
  std::uint64_t covered_local = 0;
  std::uint64_t covered_peer = 0;
  std::uint64_t covered_misses = 0;
  std::uint64_t covered_bytes_local = 0;
  std::uint64_t covered_bytes_peer = 0;
  std::uint64_t covered_miss_bytes = 0;
  // Samples that arrived to be kept.
  std::uint64_t puts_kept = 0;
  std::uint64_t puts_refused = 0;
  // Moves to the node of the next reader.
  std::uint64_t moves = 0;
  std::uint64_t moved_bytes = 0;
  std::uint64_t moves_refused = 0;  // asked again later
  // Samples for which this node has no room any more, or which it gives away as it ends.
  std::uint64_t relocated = 0;
  std::uint64_t relocated_bytes = 0;
  std::uint64_t relocations_lost = 0;  // nobody took them in time
  // Samples dropped, by reason.
  std::uint64_t dropped_by_plan = 0;
  std::uint64_t dropped_for_room = 0;    // LRU, or no room where the plan wanted it
  std::uint64_t dropped_in_transit = 0;  // the receiver did not take it in time
  std::uint64_t dropped_by_disk = 0;     // the disk lost it, or is out of use
  std::uint64_t dropped_stale = 0;       // kept for a read that did not come
  std::uint64_t bad_bytes = 0;           // wrong length or checksum on arrival
  // Questions to other nodes that were not answered in time; whose connection ended before.
  std::uint64_t peer_timeouts = 0;
  std::uint64_t peer_losses = 0;
  std::uint64_t leases_ended = 0;  // of readers at nodes that have gone
};

}  // namespace optcache::node
