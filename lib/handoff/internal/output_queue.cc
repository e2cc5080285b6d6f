#include "handoff/internal/output_queue.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace optcache::handoff::internal {
namespace {

constexpr std::size_t kPiecesAtOnce = 64;

// Room for one file descriptor, aligned as the kernel wants it.
union ControlBuffer {
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
  cmsghdr align;
};

void AddDescriptor(int fd, ControlBuffer& control, msghdr& message) {
  control = {};
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof(fd));
}

}  // namespace

void OutputQueue::Push(Piece piece, UniqueFd fd) {
  const std::size_t length = piece.bytes().size();
  if (length == 0) return;  // an empty inline sample
  bytes_ += length;
  chunks_.push_back({.piece = std::move(piece), .fd = std::move(fd)});
}

void OutputQueue::Clear() {
  chunks_.clear();
  front_written_ = 0;
  bytes_ = 0;
}

Result<bool> OutputQueue::WriteTo(int socket) {
  bool progress = false;
  while (!chunks_.empty()) {
    const Result<std::size_t> written = WriteOnce(socket);
    if (!written) return Error(written.error());
    if (*written == 0) return progress;
    Drop(*written);
    progress = true;
  }
  return true;
}

// 0: the socket is full.
Result<std::size_t> OutputQueue::WriteOnce(int socket) {
  std::array<iovec, kPiecesAtOnce> pieces{};
  std::size_t count = 0;
  for (const Chunk& chunk : chunks_) {
    // A descriptor goes with the first byte of its own message.
    if (count == pieces.size() || (count > 0 && chunk.fd.valid())) break;
    const ByteSpan rest = chunk.piece.bytes().subspan(count == 0 ? front_written_ : 0);
    pieces[count++] = {.iov_base = const_cast<std::byte*>(rest.data()), .iov_len = rest.size()};
    if (chunk.fd.valid()) break;
  }
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  ControlBuffer control{};
  if (chunks_.front().fd.valid() && front_written_ == 0) {
    AddDescriptor(chunks_.front().fd.get(), control, message);
  }
  while (true) {
    const ssize_t written = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written >= 0) return static_cast<std::size_t>(written);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno != EINTR) return Error(ErrnoStatus(errno, "write to a client"));
  }
}

void OutputQueue::Drop(std::size_t written) {
  bytes_ -= written;
  written += front_written_;
  while (!chunks_.empty() && written >= chunks_.front().piece.bytes().size()) {
    written -= chunks_.front().piece.bytes().size();
    chunks_.pop_front();
  }
  front_written_ = written;
}

}  // namespace optcache::handoff::internal
