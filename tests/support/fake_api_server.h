#pragma once

// A Kubernetes API server on loopback, in this process, that misbehaves on request: for tests of
// lib/kube and of what stands on it.
//
//   FakeApiServer server;
//   server.store([](FakeApiStore& store) { store.Put(kPods, pod); });
//   ApiAccess access{.server = server.url()};

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "support/fake_api_store.h"

namespace optcache::kube {

// What happens to a request instead of an answer from the store.
struct FakeFault {
  enum class Kind {
    kRespond,     // with `response`
    kStall,       // nothing, until the client gives up
    kHangUp,      // the connection ends before an answer
    kLoseAnswer,  // carried out, then the connection ends
  };
  Kind kind = Kind::kRespond;
  FakeResponse response;
};

// 429 with Retry-After, in seconds; -1: without.
FakeFault TooManyRequests(int retry_after_s);

// Thread-safe. One thread a connection.
class FakeApiServer {
 public:
  FakeApiServer();
  ~FakeApiServer();
  FakeApiServer(const FakeApiServer&) = delete;
  FakeApiServer& operator=(const FakeApiServer&) = delete;

  std::string url() const;

  // Looks at or changes what it keeps; watches hear of it at once.
  void store(const std::function<void(FakeApiStore&)>& use);
  // The same with a result.
  Json Find(const Resource& resource, const ObjectKey& key);

  // The next `count` requests with this verb ("get", "list", "watch", "create", "update", "apply",
  // "delete"; "": any) of this kind (plural; "": any) go wrong, after `good` that do not.
  void FailNext(const std::string& verb, const std::string& plural, FakeFault fault,
                std::size_t count = 1, std::size_t good = 0);
  // From now on nothing goes wrong that was to.
  void FailNoMore();
  // Tokens other than these get 401; empty: all are good.
  void RequireToken(std::string token);

  // Watches under way: the connection breaks; the watch ends in order; an ERROR event; a bookmark.
  void BreakWatches();
  void EndWatches();
  void SendError(const Json& status);
  void SendBookmark();
  // Bytes straight into the watches' streams.
  void SendRaw(const std::string& bytes);
  // While set, watches get nothing at all, but stay open: as a half-open connection.
  void set_mute(bool mute);
  // Watch bytes leave in pieces of so many, each a packet and a chunk; 0: as they come.
  void set_piece_bytes(std::size_t bytes);

  // Gone, connections and all, and back on the same port.
  void Stop();
  void Start();

  std::vector<FakeRequest> requests() const;
  // How many with this verb and kind, as in FailNext.
  std::size_t Count(const std::string& verb, const std::string& plural = "") const;
  // Neither get nor list nor watch.
  std::size_t Writes() const;
  std::size_t open_watches() const;
  void ForgetRequests();

 private:
  struct Fault {
    std::string verb;
    std::string plural;
    FakeFault fault;
    std::size_t count = 0;
    std::size_t good = 0;
  };
  struct WatchOrder {  // to all watches that began before it
    enum class Kind { kBreak, kEnd, kSend };
    Kind kind = Kind::kSend;
    std::string bytes;
  };
  struct Connection {
    int fd = -1;
    std::thread thread;
  };

  void Accept();
  void Serve(int fd);
  // False: the connection is to be closed.
  bool Answer(int fd, const FakeRequest& request);
  bool Respond(int fd, const FakeResponse& response) const;
  bool Watch(int fd, const FakeRequest& request);
  bool SendChunk(int fd, const std::string& bytes);
  std::optional<FakeFault> TakeFault(const FakeRequest& request) REQUIRES(mutex_);
  void Order(WatchOrder order);
  bool WaitForEnd(int fd) const;

  std::uint16_t port_ = 0;
  UniqueFd listener_;
  std::thread acceptor_;
  mutable Mutex mutex_;
  CondVar changed_;
  FakeApiStore store_ GUARDED_BY(mutex_);
  std::vector<Fault> faults_ GUARDED_BY(mutex_);
  std::string token_ GUARDED_BY(mutex_);
  std::vector<WatchOrder> orders_ GUARDED_BY(mutex_);
  bool mute_ GUARDED_BY(mutex_) = false;
  std::size_t piece_bytes_ GUARDED_BY(mutex_) = 0;
  std::size_t open_watches_ GUARDED_BY(mutex_) = 0;
  std::vector<FakeRequest> requests_ GUARDED_BY(mutex_);
  std::list<Connection> connections_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace optcache::kube
