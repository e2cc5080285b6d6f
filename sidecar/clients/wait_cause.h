#pragma once

// What a training process waits for, when it waits for a sample. Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sidecar/fetch/fetcher.h"

namespace optcache::sidecar {

enum class WaitCause : std::uint8_t {
  kArena,    // reading ahead stops for want of room
  kStore,    // a read of the store
  kNetwork,  // a sample that comes from another node
  kNode,     // the machine's own node
};
inline constexpr std::array<std::string_view, 4> kWaitCauseNames = {"arena", "store", "network",
                                                                    "node"};
inline constexpr std::size_t kWaitCauses = kWaitCauseNames.size();

// How the sidecar stands when a request begins to wait.
struct RoomFacts {
  bool in_line = false;      // the request itself waits for memory
  bool is_behind = false;    // more is wanted of node or store than they are asked for at a time
  std::size_t fetching = 0;  // samples on their way
  std::size_t staged = 0;    // samples that are staged: on their way, or here
};

// Would a larger arena let more samples come at the same time? Not if these would only wait in
// another line. And not if most of the room has samples that are here: then one sample is late,
// and not all of them.
bool WouldRoomHelp(const RoomFacts& facts);

// Of a request, by the sample that it waited for longest: whether that was fetched later for want
// of room, and where it came from, or was to come from.
WaitCause CauseOf(bool room_would_help, bool had_no_room, Source source);

}  // namespace optcache::sidecar
