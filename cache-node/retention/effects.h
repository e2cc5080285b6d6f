#pragma once

// What the node's decisions ask of the world. The program fills it with sockets, tests with a
// queue.

#include <cstdint>

#include "cache/memory_tier.h"
#include "wire/messages.h"

namespace optcache::node {

// One connection, from a sidecar or from another node, as long as it is open. Never 0.
using ClientId = std::uint64_t;

class Effects {
 public:
  virtual ~Effects() = default;
  // A number that no other request of this node that awaits an answer has.
  virtual std::uint32_t NewRequestId() = 0;
  // Answers a request. False when the client has gone. `payload` may be null.
  virtual bool Reply(ClientId to, std::uint32_t request_id, const wire::Message& message,
                     const cache::SampleRef& payload) = 0;
  // Asks or tells another node; never the node itself. False when it can't be reached now.
  virtual bool Send(wire::MemberId to, std::uint32_t request_id, const wire::Message& message,
                    const cache::SampleRef& payload) = 0;
};

}  // namespace optcache::node
