#pragma once

// A hostile client: does TLS handshakes with a server as fast as it can, and says nothing after.

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace optcache::bench {

// Runs in a process of its own from construction to destruction. Construct it while this process
// has one thread.
class HandshakeAttack {
 public:
  // At 127.0.0.1:`port` from 127.0.0.2, by `connections` at a time.
  HandshakeAttack(std::uint16_t port, int connections);
  HandshakeAttack(const HandshakeAttack&) = delete;
  HandshakeAttack& operator=(const HandshakeAttack&) = delete;
  ~HandshakeAttack();

  // Handshakes that are done.
  std::uint64_t done() const { return *done_; }

 private:
  std::atomic<std::uint64_t>* done_;  // in memory that both processes share
  pid_t pid_ = 0;
};

}  // namespace optcache::bench
