#include "cache-node/serving/peer_watch.h"

#include <algorithm>

namespace optcache::node {

PeerWatch::Found PeerWatch::Look(std::span<const Peer> peers, MonotonicTime now) {
  const Duration passed = std::min(now - last_look_, options_.most_between_looks);
  last_look_ = now;
  std::erase_if(states_, [peers](const auto& state) {
    return std::ranges::find(peers, state.first, &Peer::member) == peers.end();
  });
  Found found;
  for (const Peer& peer : peers) {
    State& state = states_[peer.member];
    if (state.received_bytes != peer.received_bytes) {
      if (state.silent) found.spoke.push_back(peer.member);
      state = {.received_bytes = peer.received_bytes};
      continue;
    }
    state.quiet += passed;
    if (state.asked) state.since_asked += passed;
    const bool to_ask = state.asked ? state.silent && state.since_asked >= options_.ask_again
                                    : peer.awaited && state.quiet >= options_.ask_after;
    if (to_ask) {
      state.asked = true;
      state.since_asked = {};
      found.to_ask.push_back(peer.member);
    } else if (state.asked && !state.silent && state.since_asked >= options_.silent_after) {
      state.silent = true;
      found.fell_silent.push_back(peer.member);
    }
  }
  return found;
}

bool PeerWatch::IsSilent(wire::MemberId member) const {
  const auto state = states_.find(member);
  return state != states_.end() && state->second.silent;
}

std::size_t PeerWatch::silent() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(states_, [](const auto& state) { return state.second.silent; }));
}

}  // namespace optcache::node
