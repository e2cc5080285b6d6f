#include "bench/memcached_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace optcache::bench {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int FreePort() {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof(address);
  ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length);
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin_port);
}

}  // namespace

Result<MemcachedServer> MemcachedServer::Start() {
  const int port = FreePort();
  const std::string port_text = std::to_string(port);
  const pid_t pid = ::fork();
  if (pid < 0) return Error(ErrnoStatus(errno, "start memcached"));
  if (pid == 0) {
    ::execlp("memcached", "memcached", "-t", "2", "-m", "1024", "-I", "1m", "-U", "0", "-u", "root",
             "-l", "127.0.0.1", "-p", port_text.c_str(), nullptr);
    ::_exit(127);
  }
  MemcachedServer server(pid, port);
  for (int i = 0; i < 500; ++i) {
    if (::waitpid(pid, nullptr, WNOHANG) == pid) {
      server.pid_ = -1;
      return Error(Code::kNotFound, "memcached did not start; is it installed?");
    }
    if (MemcachedClient::Connect(port)) return server;
    ::poll(nullptr, 0, 10);
  }
  return Error(Code::kDeadlineExceeded, "memcached did not listen within 5 s");
}

MemcachedServer::MemcachedServer(MemcachedServer&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), port_(other.port_) {}

MemcachedServer::~MemcachedServer() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGTERM);
  ::waitpid(pid_, nullptr, 0);
}

Result<MemcachedClient> MemcachedClient::Connect(int port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in address = Loopback(port);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Error(ErrnoStatus(errno, "connect to memcached"));
  }
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return MemcachedClient(std::move(fd));
}

Status MemcachedClient::Write(ByteSpan bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0) return ErrnoStatus(errno, "send to memcached");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return OkStatus();
}

Status MemcachedClient::Fill() {
  if (begin_ == end_) begin_ = end_ = 0;
  const ssize_t n = ::recv(fd_.get(), buffer_.data() + end_, buffer_.size() - end_, 0);
  if (n <= 0) return ErrnoStatus(n < 0 ? errno : ECONNRESET, "receive from memcached");
  end_ += static_cast<std::size_t>(n);
  return OkStatus();
}

Result<std::string> MemcachedClient::ReadLine() {
  for (;;) {
    const std::string_view text = AsText(ByteSpan(buffer_).subspan(begin_, end_ - begin_));
    const std::size_t end = text.find("\r\n");
    if (end != std::string_view::npos) {
      std::string line(text.substr(0, end));
      begin_ += end + 2;
      return line;
    }
    if (end_ == buffer_.size()) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    RETURN_IF_ERROR(Fill());
  }
}

// The value and, by the same reads, what follows it into the buffer.
Status MemcachedClient::ReadInto(MutableByteSpan sink) {
  const std::size_t ready = std::min(sink.size(), end_ - begin_);
  std::memcpy(sink.data(), buffer_.data() + begin_, ready);
  begin_ += ready;
  sink = sink.subspan(ready);
  while (!sink.empty()) {
    begin_ = end_ = 0;
    std::array<iovec, 2> pieces = {iovec{sink.data(), sink.size()},
                                   iovec{buffer_.data(), buffer_.size()}};
    const ssize_t n = ::readv(fd_.get(), pieces.data(), 2);
    if (n <= 0) return ErrnoStatus(n < 0 ? errno : ECONNRESET, "receive from memcached");
    const std::size_t filled = std::min(sink.size(), static_cast<std::size_t>(n));
    sink = sink.subspan(filled);
    end_ = static_cast<std::size_t>(n) - filled;
  }
  return OkStatus();
}

Status MemcachedClient::Set(std::uint32_t id, ByteSpan value) {
  RETURN_IF_ERROR(Write(
      AsBytes("set k" + std::to_string(id) + " 0 0 " + std::to_string(value.size()) + "\r\n")));
  RETURN_IF_ERROR(Write(value));
  RETURN_IF_ERROR(Write(AsBytes("\r\n")));
  ASSIGN_OR_RETURN(const std::string line, ReadLine());
  return line == "STORED" ? OkStatus() : Status(Code::kInternal, "memcached said " + line);
}

Status MemcachedClient::Get(const std::vector<std::uint32_t>& ids,
                            const std::vector<MutableByteSpan>& sinks) {
  std::string request = "get";
  for (const std::uint32_t id : ids)
    request += " k" + std::to_string(id);
  RETURN_IF_ERROR(Write(AsBytes(request + "\r\n")));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string value, ReadLine());
    if (!value.starts_with("VALUE ")) return {Code::kNotFound, "memcached said " + value};
    RETURN_IF_ERROR(ReadInto(sinks[i]));
    ASSIGN_OR_RETURN(const std::string end_of_value, ReadLine());
    if (!end_of_value.empty()) return {Code::kInternal, "memcached said " + end_of_value};
  }
  ASSIGN_OR_RETURN(const std::string end, ReadLine());
  return end == "END" ? OkStatus() : Status(Code::kInternal, "memcached said " + end);
}

}  // namespace optcache::bench
