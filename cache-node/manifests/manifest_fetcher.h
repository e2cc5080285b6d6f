#pragma once

// Fetches the manifests that this node shall hold from nodes that have them.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/backoff.h"
#include "base/callback_guard.h"
#include "base/counters.h"
#include "cache-node/manifests/manifest_file.h"
#include "cache-node/manifests/manifest_store.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "net/worker_thread.h"

namespace optcache::node {

// Used on the loop's thread only.
class ManifestFetcher {
 public:
  // This many at a time; the others wait.
  static constexpr std::size_t kAtOnce = 2;

  struct Parts {
    ManifestStore& store;
    net::WorkerThread& worker;  // checks them
    net::WorkerThread& pieces;  // writes them
    net::HttpClient& http;
    // The URLs of nodes that report a digest, without this one.
    std::function<std::vector<std::string>(const std::string& digest)> holders;
    std::function<void(const std::string& digest)> on_stored;
  };
  // The parts outlive this.
  ManifestFetcher(net::EventLoop& loop, Parts parts, std::uint64_t seed)
      : loop_(loop), parts_(std::move(parts)), seed_(seed) {}

  // Asks for it until it is stored, or until it is no longer wanted. Does nothing if it does so
  // already or the store has it.
  void Want(const std::string& digest);
  // Gives up what is not in `digests`.
  void WantOnly(const std::set<std::string>& digests);

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  struct Wanted {
    explicit Wanted(std::uint64_t seed);
    Backoff backoff;
    std::size_t turn = 0;  // whom to ask next
    bool busy = false;     // asked for, or being written
    bool waiting = false;  // for others to be done
    bool no_room = false;  // has been told
    std::string url;       // who is asked
    std::unique_ptr<net::HttpStream> stream;
    std::shared_ptr<ManifestWriter> writer;  // once room is reserved
    net::Timer timer;
  };
  void Ask(std::string digest);
  void OnHead(const std::string& digest, int status, const net::HttpHeaders& headers);
  Status Begin(const std::string& digest, const net::HttpHeaders& headers);
  void OnPiece(const std::string& digest, std::string bytes, std::function<void()> go_on);
  void OnEnd(const std::string& digest, const Status& status);
  void OnStored(const std::string& digest, const Status& status);
  void AskAgain(const std::string& digest, const std::string& why);
  void AskNext();

  net::EventLoop& loop_;
  Parts parts_;
  std::uint64_t seed_;
  std::map<std::string, Wanted> wanted_;
  std::uint64_t fetched_ = 0;
  std::uint64_t failed_ = 0;
  CallbackGuard guard_;  // last
};

}  // namespace optcache::node
