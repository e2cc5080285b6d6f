#include "sidecar/clients/wait_cause.h"

namespace optcache::sidecar {

bool WouldRoomHelp(const RoomFacts& facts) {
  return !facts.is_behind && (facts.in_line || 2 * facts.fetching >= facts.staged);
}

WaitCause CauseOf(bool room_would_help, bool had_no_room, Source source) {
  if (room_would_help && had_no_room) return WaitCause::kArena;
  switch (source) {
    case Source::kNode:
      return WaitCause::kNode;
    case Source::kPeer:
      return WaitCause::kNetwork;
    case Source::kStore:
      break;
  }
  return WaitCause::kStore;
}

}  // namespace optcache::sidecar
