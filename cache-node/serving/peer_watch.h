#pragma once

// Tells which other nodes are silent: something is awaited of them, they were asked whether they
// are there, and nothing came. A machine without power closes no connection, and neither does a
// process that is frozen; a reader of it waits for each read's deadline, one after the other.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/clock.h"
#include "wire/messages.h"

namespace optcache::node {

struct PeerWatchOptions {
  // Nothing came for this long, and something is awaited: it is asked.
  Duration ask_after = std::chrono::milliseconds(400);
  // Nothing came for this long after that: it is silent. Longer than a busy machine keeps a process
  // waiting; together with the above shorter than any read may wait.
  Duration silent_after = std::chrono::milliseconds(1200);
  Duration ask_again = std::chrono::seconds(1);  // a silent one
  // Of the time between two looks no more counts: in the rest this node itself did not run, and
  // what came lies unread.
  Duration most_between_looks = std::chrono::milliseconds(250);
};

// Not thread-safe: one owner.
class PeerWatch {
 public:
  explicit PeerWatch(PeerWatchOptions options = {}) : options_(options) {}

  // A node that is connected, as it is now.
  struct Peer {
    wire::MemberId member = 0;
    std::uint64_t received_bytes = 0;  // all that has come from it on its connections of today
    bool awaited = false;              // something is asked of it, or waits for its readers
  };
  struct Found {
    std::vector<wire::MemberId> to_ask;       // whether they are there
    std::vector<wire::MemberId> fell_silent;  // now
    std::vector<wire::MemberId> spoke;        // that were silent
  };
  // Called several times a second. Who is not among `peers` is forgotten.
  Found Look(std::span<const Peer> peers, MonotonicTime now);

  bool IsSilent(wire::MemberId member) const;
  std::size_t silent() const;

 private:
  struct State {
    std::uint64_t received_bytes = 0;
    Duration quiet{};  // since something came, while this node ran
    bool asked = false;
    Duration since_asked{};
    bool silent = false;
  };

  PeerWatchOptions options_;
  MonotonicTime last_look_{};
  std::map<wire::MemberId, State> states_;
};

}  // namespace optcache::node
