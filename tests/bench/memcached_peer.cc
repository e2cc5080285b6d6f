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

#include <openssl/ssl.h>

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

Result<MemcachedServer> MemcachedServer::Start(const MemcachedTls* tls) {
  const int port = FreePort();
  std::vector<std::string> arguments = {"memcached", "-t", "2",         "-m", "1024",
                                        "-I",        "1m", "-U",        "0",  "-u",
                                        "root",      "-l", "127.0.0.1", "-p", std::to_string(port)};
  if (tls != nullptr) {
    arguments.insert(arguments.end(), {"-Z", "-o", "ssl_chain_cert=" + tls->chain_file, "-o",
                                       "ssl_key=" + tls->key_file});
  }
  std::vector<char*> raw;
  for (std::string& argument : arguments)
    raw.push_back(argument.data());
  raw.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid < 0) return Error(ErrnoStatus(errno, "start memcached"));
  if (pid == 0) {
    ::execvp("memcached", raw.data());
    ::_exit(127);
  }
  MemcachedServer server(pid, port);
  for (int i = 0; i < 500; ++i) {
    if (::waitpid(pid, nullptr, WNOHANG) == pid) {
      server.pid_ = -1;
      return Error(Code::kNotFound, "memcached did not start; is it installed?");
    }
    if (MemcachedClient::Connect(port, tls)) return server;
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

void MemcachedClient::FreeSsl::operator()(ssl_st* ssl) const {
  SSL_free(ssl);
}

Result<MemcachedClient> MemcachedClient::Connect(int port, const MemcachedTls* tls) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in address = Loopback(port);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Error(ErrnoStatus(errno, "connect to memcached"));
  }
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  MemcachedClient client(std::move(fd));
  if (tls != nullptr) RETURN_IF_ERROR(client.StartTls(*tls));
  return client;
}

// With a read buffer of several records, as our own side has.
Status MemcachedClient::StartTls(const MemcachedTls& tls) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  &SSL_CTX_free);
  if (SSL_CTX_load_verify_file(context.get(), tls.ca_file.c_str()) != 1) {
    return {Code::kInvalidArgument, "no certificate in " + tls.ca_file};
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_read_ahead(context.get(), 1);
  SSL_CTX_set_default_read_buffer_len(context.get(), 128U << 10U);
  ssl_.reset(SSL_new(context.get()));
  SSL_set_fd(ssl_.get(), fd_.get());
  if (SSL_connect(ssl_.get()) == 1) return OkStatus();
  return {Code::kUnavailable, "memcached did not speak TLS"};
}

Status MemcachedClient::Write(ByteSpan bytes) {
  while (!bytes.empty()) {
    if (ssl_ != nullptr) {
      std::size_t written = 0;
      if (SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written) != 1) {
        return {Code::kUnavailable, "send to memcached by TLS"};
      }
      bytes = bytes.subspan(written);
      continue;
    }
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0) return ErrnoStatus(errno, "send to memcached");
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return OkStatus();
}

Result<std::size_t> MemcachedClient::Receive(MutableByteSpan first, MutableByteSpan second) {
  if (ssl_ != nullptr) {
    std::size_t received = 0;
    if (SSL_read_ex(ssl_.get(), first.data(), first.size(), &received) == 1) return received;
    return Error(Code::kUnavailable, "receive from memcached by TLS");
  }
  const std::array<iovec, 2> pieces = {iovec{first.data(), first.size()},
                                       iovec{second.data(), second.size()}};
  const ssize_t n = ::readv(fd_.get(), pieces.data(), second.empty() ? 1 : 2);
  if (n <= 0) return Error(ErrnoStatus(n < 0 ? errno : ECONNRESET, "receive from memcached"));
  return static_cast<std::size_t>(n);
}

Status MemcachedClient::Fill() {
  if (begin_ == end_) begin_ = end_ = 0;
  ASSIGN_OR_RETURN(const std::size_t n, Receive(MutableByteSpan(buffer_).subspan(end_), {}));
  end_ += n;
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
    ASSIGN_OR_RETURN(const std::size_t n, Receive(sink, buffer_));
    const std::size_t filled = std::min(sink.size(), n);
    sink = sink.subspan(filled);
    end_ = n - filled;
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
