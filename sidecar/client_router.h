#pragma once

// Answers of the core go to the client that asked: a training process, or a client of the endpoint.

#include <vector>

#include "sidecar/ports/ports.h"
#include "sidecar/s3/object_reads.h"

namespace optcache::sidecar {

// Both outlive it. Not thread-safe: belongs to the event loop's thread.
class ClientRouter final : public ClientPort {
 public:
  ClientRouter(ClientPort& processes, ClientPort& objects)
      : processes_(processes), objects_(objects) {}

  void Reply(ClientId client, std::uint64_t request, BatchId batch,
             const std::vector<Served>& samples) override {
    Of(client).Reply(client, request, batch, samples);
  }
  void Refuse(ClientId client, std::uint64_t request, const Status& why) override {
    Of(client).Refuse(client, request, why);
  }

 private:
  ClientPort& Of(ClientId client) { return client >= kObjectClients ? objects_ : processes_; }

  ClientPort& processes_;
  ClientPort& objects_;
};

}  // namespace optcache::sidecar
