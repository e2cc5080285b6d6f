#include "handoff/internal/connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace optcache::handoff::internal {
namespace {

Peer PeerOfSocket(int socket) {
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return {};
  return {.pid = credentials.pid, .uid = credentials.uid, .gid = credentials.gid};
}

}  // namespace

Connection::Connection(ClientId client, UniqueFd connected, MonotonicTime now)
    : id(client),
      socket(std::move(connected)),
      peer(PeerOfSocket(socket.get())),
      opened_at_(now),
      written_at_(now) {}

Connection::ReadResult Connection::Read() {
  const MutableByteSpan space = input_.Prepare();
  while (true) {
    const ssize_t got = ::recv(socket.get(), space.data(), space.size(), MSG_DONTWAIT);
    if (got > 0) {
      if (state != State::kGivenUp) input_.Commit(static_cast<std::size_t>(got));
      return ReadResult::kSome;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return ReadResult::kNothing;
    return ReadResult::kClosed;
  }
}

Result<std::optional<Frame>> Connection::NextFrame() {
  frames_left_ = Backlogged() && input_.pending() > 0;
  if (state == State::kGivenUp || Backlogged()) return std::nullopt;
  Result<std::optional<Frame>> frame = input_.Next();
  if (frame && frame->has_value()) ++frames_;
  return frame;
}

bool Connection::Write(MonotonicTime now) {
  if (output.empty()) return true;
  const Result<bool> progress = output.WriteTo(socket.get());
  if (!progress) return false;
  if (*progress) written_at_ = now;
  if (output.empty() && state == State::kGivenUp) ::shutdown(socket.get(), SHUT_WR);
  return true;
}

void Connection::GiveUp() {
  state = State::kGivenUp;
  waiting.clear();
  input_ = FrameBuffer();
  frames_left_ = false;
  if (output.empty()) ::shutdown(socket.get(), SHUT_WR);
}

Status Connection::CheckPace(MonotonicTime now) {
  if (output.empty()) written_at_ = now;
  if (now - written_at_ >= kWriteDeadline) {
    return {Code::kDeadlineExceeded, "the client did not read its answers"};
  }
  if (state == State::kNew && now - opened_at_ >= kFrameDeadline) {
    return {Code::kDeadlineExceeded, "the client did not say Hello"};
  }
  if (input_.pending() == 0 || Backlogged()) {
    frame_begun_at_.reset();
  } else if (!frame_begun_at_ || frames_ != frames_at_begin_) {
    frame_begun_at_ = now;
    frames_at_begin_ = frames_;
  } else if (now - *frame_begun_at_ >= kFrameDeadline) {
    return {Code::kDeadlineExceeded, "the client began a frame and did not end it"};
  }
  return OkStatus();
}

std::uint32_t Connection::Interest() const {
  std::uint32_t events = 0;
  if (state == State::kGivenUp || !Backlogged()) events |= EPOLLIN;
  if (!output.empty() || frames_left_) events |= EPOLLOUT;
  return events;
}

}  // namespace optcache::handoff::internal
