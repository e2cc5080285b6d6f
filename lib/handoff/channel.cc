// Serves the server's end of the socket on one thread, with an epoll of its own, and never blocks.
//
//   epoll ─► Accept ─► Adopt ─► Connection                        a client more
//         ─► OnEvent ─► Connection::Read ─► HandleFrames ─► Handle ─► ChannelHandler
//   Reply, Fail, ... ─► OutputQueue ─► Flush                      now, or later than its Get
//   Tick             ─► pace and deadlines, "still waiting", accepting again
//
// The idea: a client that is given up may still see the arena, so its slots must not be used again.
// GiveUp therefore only ends the talk: the connection stays, and reads and throws away, until the
// client closes its end. Then Close tells the handler, which takes the slots back.
//
// Invariants: a Get is in `waiting` from its arrival to its one answer; an answer to anything else
// is dropped. A connection is destroyed only in OnEvent and Tick, so a reference to one survives
// the calls that handlers make. While too many answers wait to be taken, no request is taken
// (Connection).

#include "handoff/channel.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "handoff/frame_buffer.h"
#include "handoff/internal/connection.h"
#include "handoff/socket.h"

namespace optcache::handoff {
namespace {

constexpr ClientId kListener = 0;  // in epoll's data; clients count from 1
constexpr std::size_t kEventsAtOnce = 64;

Status Broken(std::string_view what) {
  return {Code::kInvalidArgument, std::string(what)};
}

}  // namespace

Result<OpenComputedReply> ChannelHandler::OnOpenComputed(ClientId /*client*/,
                                                         const OpenComputedRequest& /*request*/) {
  return Error(Code::kNotFound, "this server keeps no computed samples");
}

void ChannelHandler::OnComputedPut(ClientId /*client*/, const ComputedPut& /*put*/) {}

Result<ComputedCounts> ChannelHandler::OnComputedCounts(ClientId /*client*/,
                                                        const ComputedCountsRequest& /*request*/) {
  return Error(Code::kNotFound, "this server keeps no computed samples");
}

Result<ReadCounts> ChannelHandler::OnReadCounts(ClientId /*client*/,
                                                const ReadCountsRequest& /*request*/) {
  return Error(Code::kNotFound, "this server counts no reads");
}

Result<std::unique_ptr<ChannelServer>> ChannelServer::Listen(Options options, const Clock& clock,
                                                             ChannelHandler& handler) {
  ASSIGN_OR_RETURN(UniqueFd listener, ListenAt(options.path));
  auto server = std::make_unique<ChannelServer>(std::move(options), clock, handler);
  server->listener_ = std::move(listener);
  server->PauseAccepting();
  server->Tick();
  return server;
}

ChannelServer::ChannelServer(Options options, const Clock& clock, ChannelHandler& handler)
    : options_(std::move(options)),
      clock_(clock),
      handler_(handler),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  CHECK(epoll_.valid());
}

ChannelServer::~ChannelServer() {
  if (listener_.valid()) ::unlink(options_.path.c_str());
}

void ChannelServer::ProcessReady() {
  std::array<epoll_event, kEventsAtOnce> events{};
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), /*timeout=*/0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == kListener) {
      Accept();
    } else {
      OnEvent(event.data.u64, event.events);
    }
  }
}

void ChannelServer::Tick() {
  if (listener_.valid() && !accepting_) {
    epoll_event event{.events = EPOLLIN, .data = {.u64 = kListener}};
    accepting_ = ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) == 0;
  }
  CloseStrangers();
  const MonotonicTime now = clock_.Now();
  for (const auto& [id, connection] : connections_) {
    if (connection->state != Connection::State::kGivenUp) TellWaiting(*connection, now);
    const Status pace = connection->CheckPace(now);
    if (pace.ok()) continue;
    if (connection->state != Connection::State::kGivenUp) {
      ++counters_.too_slow;
      GiveUp(*connection, pace);
    } else {
      connection->output.Clear();  // not even the last words
      connection->GiveUp();
      Watch(*connection);
    }
  }
}

// --- Connections --------------------------------------------------------------------------------

void ChannelServer::Accept() {
  while (true) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.valid()) {
      Adopt(std::move(socket));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      Log(LogLevel::kWarning, "accepting clients paused",
          {{"error", ErrnoStatus(errno, "accept").message()}});
      PauseAccepting();
      return;
    }
  }
}

// Until the next Tick: without a free descriptor the listener would stay ready for nothing.
void ChannelServer::PauseAccepting() {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
  accepting_ = false;
}

ClientId ChannelServer::Adopt(UniqueFd socket) {
  const ClientId id = ++last_client_;
  if (connections_.size() >= kMaxClients) {
    ++counters_.too_many;
    return id;
  }
  auto connection = std::make_unique<Connection>(id, std::move(socket), clock_.Now());
  connection->watched = connection->Interest();
  epoll_event event{.events = connection->watched, .data = {.u64 = id}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection->socket.get(), &event) != 0) {
    ++counters_.too_many;  // the machine's limit
    return id;
  }
  ++counters_.accepted;
  connections_.emplace(id, std::move(connection));
  return id;
}

internal::Connection* ChannelServer::Find(ClientId client) const {
  const auto found = connections_.find(client);
  return found == connections_.end() ? nullptr : found->second.get();
}

std::optional<Peer> ChannelServer::PeerOf(ClientId client) const {
  const Connection* connection = Find(client);
  if (connection == nullptr) return std::nullopt;
  return connection->peer;
}

void ChannelServer::OnEvent(ClientId client, std::uint32_t events) {
  Connection* connection = Find(client);
  if (connection == nullptr) return;
  if ((events & EPOLLOUT) != 0) {
    Flush(*connection);
    HandleFrames(*connection);  // those that waited for the backlog to go
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
  switch (connection->Read()) {
    case Connection::ReadResult::kSome:
      HandleFrames(*connection);
      break;
    case Connection::ReadResult::kNothing:
      break;
    case Connection::ReadResult::kClosed:
      Close(client);
      break;
  }
}

void ChannelServer::Close(ClientId client) {
  connections_.erase(client);  // and with its socket, what epoll knows of it
  handler_.OnClientClosed(client);
}

// Who was given up before its Welcome sees nothing of the arena: there is nothing to wait for.
void ChannelServer::CloseStrangers() {
  std::vector<ClientId> strangers;
  for (const auto& [id, connection] : connections_) {
    if (connection->state == Connection::State::kGivenUp && !connection->has_arena) {
      strangers.push_back(id);
    }
  }
  for (const ClientId id : strangers)
    Close(id);
}

void ChannelServer::Watch(Connection& connection) {
  const std::uint32_t interest = connection.Interest();
  if (interest == connection.watched) return;
  epoll_event event{.events = interest, .data = {.u64 = connection.id}};
  CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.socket.get(), &event) == 0);
  connection.watched = interest;
}

void ChannelServer::GiveUp(Connection& connection, const Status& why) {
  Log(LogLevel::kWarning, "client given up",
      {{"client", connection.id}, {"pid", connection.peer.pid}, {"error", why.message()}});
  if (why.code() == Code::kDeadlineExceeded && !connection.output.empty()) {
    connection.output.Clear();  // it does not read, and part of a frame may have gone
  } else {
    connection.output.Push({.owned = EncodeError(0, why), .pinned = {}, .pin = {}});
  }
  connection.state = Connection::State::kGivenUp;
  Flush(connection);
  connection.GiveUp();
  Watch(connection);
}

// --- Requests -----------------------------------------------------------------------------------

void ChannelServer::HandleFrames(Connection& connection) {
  while (true) {
    const Result<bool> handled = HandleNext(connection);
    if (!handled) {
      const bool is_user = handled.error().code() == Code::kPermissionDenied;
      ++(is_user ? counters_.other_user : counters_.broke_protocol);
      GiveUp(connection, handled.error());
      return;
    }
    if (!*handled) break;
  }
  Watch(connection);
}

// False: there is nothing more to handle now. An error gives the client up.
Result<bool> ChannelServer::HandleNext(Connection& connection) {
  ASSIGN_OR_RETURN(const std::optional<Frame> frame, connection.NextFrame());
  if (!frame) return false;
  ASSIGN_OR_RETURN(ClientMessage message, DecodeClientMessage(frame->type, frame->body));
  RETURN_IF_ERROR(Handle(connection, frame->request, std::move(message)));
  return true;
}

Status ChannelServer::Handle(Connection& connection, RequestId request, ClientMessage message) {
  const ClientId id = connection.id;
  if (const auto* hello = std::get_if<Hello>(&message)) {
    return HandleHello(connection, request, *hello);
  }
  if (connection.state == Connection::State::kNew) return Broken("the first frame is no Hello");
  if (const auto* open = std::get_if<OpenRequest>(&message)) {
    return HandleOpen(connection, request, *open);
  }
  if (auto* get = std::get_if<GetRequest>(&message)) {
    return HandleGet(connection, request, std::move(*get));
  }
  if (const auto* attach = std::get_if<AttachRequest>(&message)) {
    const Result<AttachReply> reply = handler_.OnAttach(id, *attach);
    Send(connection, reply ? EncodeAttached(request, *reply, connection.version)
                           : EncodeError(request, reply.error()));
  } else if (const auto* pass = std::get_if<PassRequest>(&message)) {
    const Status status = handler_.OnPass(id, *pass);
    Send(connection, status.ok() ? EncodeDone(request) : EncodeError(request, status));
  } else if (auto* trace = std::get_if<TraceRequest>(&message)) {
    const Status status = handler_.OnTrace(id, std::move(*trace));
    Send(connection, status.ok() ? EncodeDone(request) : EncodeError(request, status));
  } else if (const auto* computed = std::get_if<OpenComputedRequest>(&message)) {
    return HandleOpenComputed(connection, request, *computed);
  } else if (const auto* put = std::get_if<ComputedPut>(&message)) {
    handler_.OnComputedPut(id, *put);
  } else if (const auto* counts = std::get_if<ComputedCountsRequest>(&message)) {
    const Result<ComputedCounts> reply = handler_.OnComputedCounts(id, *counts);
    Send(connection, reply ? EncodeCounts(request, *reply) : EncodeError(request, reply.error()));
  } else if (const auto* reads = std::get_if<ReadCountsRequest>(&message)) {
    const Result<ReadCounts> reply = handler_.OnReadCounts(id, *reads);
    Send(connection, reply ? EncodeReads(request, *reply) : EncodeError(request, reply.error()));
  } else if (const auto* release = std::get_if<ReleaseRequest>(&message)) {
    handler_.OnRelease(id, release->batches);
  } else {
    handler_.OnDetach(id, std::get<DetachRequest>(message));
  }
  return OkStatus();
}

bool ChannelServer::Welcomes(std::uint32_t user) const {
  return !options_.users || user == 0 ||
         std::ranges::find(*options_.users, user) != options_.users->end();
}

Status ChannelServer::HandleHello(Connection& connection, RequestId request, const Hello& hello) {
  if (connection.state != Connection::State::kNew) return Broken("a second Hello");
  if (!Welcomes(connection.peer.uid)) {
    return {Code::kPermissionDenied,
            "this sidecar is not for user " + std::to_string(connection.peer.uid) +
                ": train as the user that started it, or start it with --allow-uid " +
                std::to_string(connection.peer.uid)};
  }
  const std::uint16_t version = std::min(kMaxVersion, hello.max_version);
  if (version < std::max(kMinVersion, hello.min_version)) {
    return Broken("the client speaks versions " + std::to_string(hello.min_version) + " to " +
                  std::to_string(hello.max_version) + ", this sidecar " +
                  std::to_string(kMinVersion) + " to " + std::to_string(kMaxVersion) +
                  ": install the Python package and the sidecar of one release");
  }
  UniqueFd arena(::fcntl(options_.arena_fd, F_DUPFD_CLOEXEC, 0));
  if (!arena.valid()) return ErrnoStatus(errno, "pass the arena");
  connection.state = Connection::State::kOpen;
  connection.version = version;
  connection.has_arena = true;
  Send(connection, EncodeWelcome(request, version, options_.arena_size), std::move(arena));
  return OkStatus();
}

Status ChannelServer::HandleOpen(Connection& connection, RequestId request,
                                 const OpenRequest& open) {
  const Result<OpenReply> reply = handler_.OnOpen(connection.id, open);
  if (!reply) {
    Send(connection, EncodeError(request, reply.error()));
    return OkStatus();
  }
  UniqueFd manifest(::fcntl(reply->manifest_fd, F_DUPFD_CLOEXEC, 0));
  if (!manifest.valid()) return ErrnoStatus(errno, "pass the manifest");
  Send(connection, EncodeOpened(request, *reply, connection.version), std::move(manifest));
  return OkStatus();
}

Status ChannelServer::HandleOpenComputed(Connection& connection, RequestId request,
                                         const OpenComputedRequest& open) {
  const Result<OpenComputedReply> reply = handler_.OnOpenComputed(connection.id, open);
  if (!reply) {
    Send(connection, EncodeError(request, reply.error()));
    return OkStatus();
  }
  UniqueFd memory(::fcntl(reply->memory_fd, F_DUPFD_CLOEXEC, 0));
  if (!memory.valid()) return ErrnoStatus(errno, "pass the memory of computed samples");
  Send(connection, EncodeComputedOpened(request, *reply), std::move(memory));
  return OkStatus();
}

Status ChannelServer::HandleGet(Connection& connection, RequestId request, GetRequest get) {
  if (connection.waiting.size() >= kMaxWaitingGets) return Broken("too many unanswered Gets");
  if (!connection.waiting.emplace(request, clock_.Now()).second) {
    return Broken("two Gets with one request number");
  }
  handler_.OnGet(connection.id, request, std::move(get));
  return OkStatus();
}

// --- Answers ------------------------------------------------------------------------------------

void ChannelServer::Reply(ClientId client, RequestId request, const SamplesReply& reply) {
  Connection* connection = Find(client);
  if (connection == nullptr || connection->waiting.erase(request) == 0) return;
  Result<std::vector<Piece>> pieces = EncodeSamples(request, reply, connection->version);
  if (!pieces) {
    Send(*connection, EncodeError(request, pieces.error()));
    if (reply.batch != 0) handler_.OnRelease(client, {reply.batch});
    return;
  }
  for (Piece& piece : *pieces) {
    connection->output.Push(std::move(piece));
  }
  Flush(*connection);
}

void ChannelServer::Fail(ClientId client, RequestId request, const Status& why) {
  AnswerGet(client, request, EncodeError(request, why));
}

void ChannelServer::ReplyValue(ClientId client, RequestId request, const ValueReply& value) {
  AnswerGet(client, request, EncodeValue(request, value));
}

void ChannelServer::ReplyCompute(ClientId client, RequestId request, const ComputeReply& compute) {
  AnswerGet(client, request, EncodeCompute(request, compute));
}

void ChannelServer::AnswerGet(ClientId client, RequestId request, FrameBytes frame) {
  Connection* connection = Find(client);
  if (connection == nullptr || connection->waiting.erase(request) == 0) return;
  Send(*connection, std::move(frame));
}

void ChannelServer::Send(Connection& connection, FrameBytes frame, UniqueFd fd) {
  if (connection.state == Connection::State::kGivenUp) return;
  connection.output.Push({.owned = std::move(frame), .pinned = {}, .pin = {}}, std::move(fd));
  Flush(connection);
}

void ChannelServer::Flush(Connection& connection) {
  if (!connection.Write(clock_.Now())) {
    connection.output.Clear();
    connection.GiveUp();  // reading tells when its end is closed
  }
  Watch(connection);
}

void ChannelServer::TellWaiting(Connection& connection, MonotonicTime now) {
  for (auto& [request, told_at] : connection.waiting) {
    if (now - told_at < kWaitingInterval || !connection.output.empty()) continue;
    told_at = now;
    const std::string why = handler_.WhyWaiting(connection.id, request);
    connection.output.Push({.owned = EncodeWaiting(request, why), .pinned = {}, .pin = {}});
  }
  Flush(connection);
}

void ChannelServer::VisitCounters(const CounterVisitor& visitor) const {
  visitor(MetricKind::kGauge, "optcache_channel_clients", {},
          static_cast<double>(connections_.size()));
  visitor(MetricKind::kCounter, "optcache_channel_connections_total", {},
          static_cast<double>(counters_.accepted));
  const auto refused = [&](std::string_view reason, std::uint64_t count) {
    visitor(MetricKind::kCounter, "optcache_channel_refused_total",
            {{"reason", std::string(reason)}}, static_cast<double>(count));
  };
  refused("too_many", counters_.too_many);
  refused("protocol", counters_.broke_protocol);
  refused("too_slow", counters_.too_slow);
  refused("user", counters_.other_user);
}

}  // namespace optcache::handoff
