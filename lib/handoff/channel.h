#pragma once

// The server's end of the hand-over socket.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "handoff/codec.h"
#include "handoff/messages.h"

namespace optcache::handoff {

// A connection of a training process; never used twice.
using ClientId = std::uint64_t;

// Who is at the other end, as the kernel says.
struct Peer {
  std::int32_t pid = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

// What the server does with requests. Called from within ChannelServer::ProcessReady and Tick; may
// call the server back at once. An error goes to the client as it is: its sentence stands in an
// exception there.
class ChannelHandler {
 public:
  virtual ~ChannelHandler() = default;
  // kUnavailable: the client says so once and asks again until it is there.
  virtual Result<OpenReply> OnOpen(ClientId client, const OpenRequest& request) = 0;
  virtual Result<AttachReply> OnAttach(ClientId client, const AttachRequest& request) = 0;
  virtual Status OnPass(ClientId client, const PassRequest& request) = 0;
  virtual Status OnTrace(ClientId client, TraceRequest request) = 0;
  // To be answered by one Reply..., or Fail, now or later, unless the client goes.
  virtual void OnGet(ClientId client, RequestId request, GetRequest get) = 0;
  // The client holds these no longer. They may be unknown or another's: a client may lie.
  virtual void OnRelease(ClientId client, const std::vector<BatchId>& batches) = 0;
  virtual void OnDetach(ClientId client, const DetachRequest& request) = 0;
  // Computed samples: who keeps none refuses to open them, and hears no more of them.
  virtual Result<OpenComputedReply> OnOpenComputed(ClientId client,
                                                   const OpenComputedRequest& request);
  virtual void OnComputedPut(ClientId client, const ComputedPut& put);
  virtual Result<ComputedCounts> OnComputedCounts(ClientId client,
                                                  const ComputedCountsRequest& request);
  // By default it is refused: no reads are counted.
  virtual Result<ReadCounts> OnReadCounts(ClientId client, const ReadCountsRequest& request);
  // Nobody at the other end can see the arena through this client any more: its batches come back,
  // its requests need no answer.
  virtual void OnClientClosed(ClientId client) = 0;
  // A request is still unanswered: a sentence that says why, for people. May not call the server.
  virtual std::string WhyWaiting(ClientId client, RequestId request) = 0;
};

namespace internal {
class Connection;
}

// Serves any number of clients from one thread and never blocks. An outside event loop watches
// poll_fd() for reading, calls ProcessReady when it is, and Tick about once a second.
//
// A client that breaks the protocol or does not read its answers is given up: told so if possible,
// and from then on only awaited to close its end (docs/formats/handoff.md says why); one that never
// was welcome is closed at the next Tick.
//
// Not thread-safe: belongs to the event loop's thread.
class ChannelServer {
 public:
  struct Options {
    std::string path;   // of the socket
    int arena_fd = -1;  // outlives the server
    ByteCount arena_size = 0;
    // Users whose processes are welcome, beside root; unset: everybody who reaches the socket.
    std::optional<std::vector<std::uint32_t>> users;
  };

  // Listens at `path`, mode 0666. Replaces a socket that nobody listens to. kConflict: somebody
  // does, or something else lies there. kInvalidArgument: the path is longer than a socket's may
  // be.
  static Result<std::unique_ptr<ChannelServer>> Listen(Options options, const Clock& clock,
                                                       ChannelHandler& handler);

  // Without a socket of its own: clients come by Adopt.
  ChannelServer(Options options, const Clock& clock, ChannelHandler& handler);
  ~ChannelServer();
  ChannelServer(const ChannelServer&) = delete;
  ChannelServer& operator=(const ChannelServer&) = delete;

  int poll_fd() const { return epoll_.get(); }
  void ProcessReady();
  // Deadlines, and word to clients that have waited for long.
  void Tick();

  // Takes over a connected socket; closes it at once if there are too many.
  ClientId Adopt(UniqueFd socket);

  // Answers a Get. Does nothing if the client has gone or was given up. An answer that is too large
  // becomes an error, and its batch comes back at once.
  void Reply(ClientId client, RequestId request, const SamplesReply& reply);
  // The same with an error for the whole of it.
  void Fail(ClientId client, RequestId request, const Status& why);
  // Answers a Get of a computed sample.
  void ReplyValue(ClientId client, RequestId request, const ValueReply& value);
  void ReplyCompute(ClientId client, RequestId request, const ComputeReply& compute);

  // Nothing is known of a client that has gone.
  std::optional<Peer> PeerOf(ClientId client) const;
  std::size_t clients() const { return connections_.size(); }

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  using Connection = internal::Connection;
  struct Counters {
    std::uint64_t accepted = 0;
    std::uint64_t too_many = 0;
    std::uint64_t broke_protocol = 0;
    std::uint64_t too_slow = 0;
    std::uint64_t other_user = 0;
  };

  Connection* Find(ClientId client) const;
  void Accept();
  void PauseAccepting();
  void OnEvent(ClientId client, std::uint32_t events);
  void HandleFrames(Connection& connection);
  Result<bool> HandleNext(Connection& connection);
  Status Handle(Connection& connection, RequestId request, ClientMessage message);
  bool Welcomes(std::uint32_t user) const;
  Status HandleHello(Connection& connection, RequestId request, const Hello& hello);
  Status HandleOpen(Connection& connection, RequestId request, const OpenRequest& open);
  Status HandleOpenComputed(Connection& connection, RequestId request,
                            const OpenComputedRequest& open);
  Status HandleGet(Connection& connection, RequestId request, GetRequest get);
  void AnswerGet(ClientId client, RequestId request, FrameBytes frame);
  void Send(Connection& connection, FrameBytes frame, UniqueFd fd = UniqueFd());
  void Flush(Connection& connection);
  void GiveUp(Connection& connection, const Status& why);
  void Close(ClientId client);
  void CloseStrangers();
  void Watch(Connection& connection);
  void TellWaiting(Connection& connection, MonotonicTime now);

  Options options_;
  const Clock& clock_;
  ChannelHandler& handler_;
  UniqueFd epoll_;
  UniqueFd listener_;
  bool accepting_ = false;
  std::map<ClientId, std::unique_ptr<Connection>> connections_;
  ClientId last_client_ = 0;
  Counters counters_;
};

}  // namespace optcache::handoff
