// Opens listening sockets, and accepts connections in turns.
//
// The idea: whatever the machine has must work. "*" takes IPv6 and IPv4 in one socket, or IPv4
// alone where there is no IPv6. A Unix socket's file may be left from a process that died: a probe
// tells whether anything listens there, and only a socket file that nothing listens to is removed.
// Its mode is set before it is bound, so at no time may another user connect.
//
// AcceptAll takes a bounded number of connections a turn, so that others have theirs. Where
// descriptors or memory are short, it pauses and leaves new peers in the backlog, instead of being
// called again and again.

#include "net/internal/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/log.h"

namespace optcache::net {
namespace {

constexpr int kBacklog = 1024;
constexpr int kAcceptsATurn = 64;
// Who may not write to a Unix socket may not connect to it (unix(7)).
constexpr mode_t kOwnUserAlone = 0600;
// When the process is out of descriptors, new peers wait in the backlog.
constexpr Duration kPauseWhenFull = std::chrono::milliseconds(100);

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

SocketAddress UnixAddress(const std::string& path) {
  SocketAddress result;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());  // ParseAddress has checked the length.
  std::memcpy(&result.storage, &address, sizeof(address));
  result.length = sizeof(address);
  return result;
}

Result<SocketAddress> ResolveOne(const std::string& host, std::uint16_t port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    return Error(Code::kInvalidArgument,
                 "the host is not known: " + std::string(::gai_strerror(error)));
  }
  SocketAddress result;
  std::memcpy(&result.storage, found->ai_addr, found->ai_addrlen);
  result.length = found->ai_addrlen;
  ::freeaddrinfo(found);
  return result;
}

// What to bind to: the first that this machine has.
Result<std::vector<SocketAddress>> Resolve(const Address& address) {
  if (address.is_unix()) return std::vector{UnixAddress(address.path)};
  std::vector<std::string> hosts = {address.host};
  if (address.host == kEverywhere) hosts = {"::", "0.0.0.0"};
  std::vector<SocketAddress> result;
  for (const std::string& host : hosts) {
    ASSIGN_OR_RETURN(result.emplace_back(), ResolveOne(host, address.port));
  }
  return result;
}

// Removes a socket file that its listener left behind, and nothing else. The probe does not block:
// a listener that is stopped may have no room for it.
Status RemoveStale(SocketAddress& address, const std::string& path) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) return OkStatus();
  if (!S_ISSOCK(info.st_mode)) {
    return {Code::kConflict,
            "listen on unix:" + path +
                ": a file that is no socket lies there; remove it or choose another path"};
  }
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (::connect(probe.get(), address.get(), address.length) != 0 && errno == ECONNREFUSED) {
    ::unlink(path.c_str());
  }
  return OkStatus();
}

std::string PeerName(const SocketAddress& peer) {
  std::array<char, NI_MAXHOST> host = {};
  std::array<char, NI_MAXSERV> port = {};
  const auto* address = reinterpret_cast<const sockaddr*>(&peer.storage);
  if (::getnameinfo(address, peer.length, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "unknown";
  }
  std::string name = host.data();
  constexpr std::string_view kMapped = "::ffff:";  // IPv4 at a socket of both
  if (name.starts_with(kMapped) && name.find('.') != std::string::npos)
    name.erase(0, kMapped.size());
  return (name.find(':') == std::string::npos ? name : "[" + name + "]") + ":" + port.data();
}

// 0, or errno.
int BindAndListen(SocketAddress& where, UniqueFd& fd) {
  const int family = where.storage.ss_family;
  fd = UniqueFd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno;
  const int on = 1;
  const int off = 0;
  if (family != AF_UNIX) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  // "[::]" takes IPv4, too, however the machine is set up.
  if (family == AF_INET6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  // The file is made with the mode of its socket: at no time another user can connect.
  if (family == AF_UNIX && ::fchmod(fd.get(), kOwnUserAlone) != 0) return errno;
  const bool listens =
      ::bind(fd.get(), where.get(), where.length) == 0 && ::listen(fd.get(), kBacklog) == 0;
  return listens ? 0 : errno;
}

std::uint16_t BoundPort(int fd) {
  sockaddr_storage storage = {};
  socklen_t length = sizeof(storage);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return 0;
  if (storage.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
  }
  if (storage.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
  }
  return 0;
}

}  // namespace

void ConfigureStream(int fd) {
  // All fail on Unix sockets, which need none.
  const auto set = [fd](int level, int name, int value) {
    ::setsockopt(fd, level, name, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  // A machine without power says no goodbye: its connections end when nothing was acknowledged for
  // this long (tcp(7)), whether something is on its way or not.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

Result<std::unique_ptr<Listener>> Listener::Open(EventLoop& loop, const std::string& text) {
  ASSIGN_OR_RETURN(Address address, ParseAddress(text));
  auto resolved = Resolve(address);
  if (!resolved) return Error(std::move(resolved).error().WithContext("listen on " + text));
  if (address.is_unix()) RETURN_IF_ERROR(RemoveStale(resolved->front(), address.path));
  UniqueFd fd;
  int error = 0;
  for (SocketAddress& where : *resolved) {
    error = BindAndListen(where, fd);
    const bool is_missing = error == EAFNOSUPPORT || error == EADDRNOTAVAIL;
    if (!is_missing) break;
  }
  if (error == EADDRINUSE) {
    return Error(Code::kConflict, "listen on " + text +
                                      ": another process listens there; stop it or choose "
                                      "another address");
  }
  if (error != 0) return Error(ErrnoStatus(error, "listen on " + text));
  if (!address.is_unix()) address.port = BoundPort(fd.get());
  return std::unique_ptr<Listener>(new Listener(loop, std::move(fd), std::move(address)));
}

Listener::~Listener() {
  Stop();
}

void Listener::Start(std::function<void(Accepted)> on_accepted) {
  on_accepted_ = std::move(on_accepted);
  watch_ = loop_.WatchReadable(fd_.get(), [this] { AcceptAll(); });
}

void Listener::Stop() {
  pause_.Cancel();
  watch_.Cancel();
  if (!fd_.valid()) return;
  // While it listens no other process replaces the file, which is its own until then.
  if (address_.is_unix()) ::unlink(address_.path.c_str());
  fd_.Reset();
}

void Listener::AcceptAll() {
  for (int i = 0; i < kAcceptsATurn && fd_.valid(); ++i) {
    SocketAddress peer;
    peer.length = sizeof(peer.storage);
    UniqueFd fd(::accept4(fd_.get(), peer.get(), &peer.length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      ConfigureStream(fd.get());
      on_accepted_({.fd = std::move(fd),
                    .address = address_.is_unix() ? FormatAddress(address_) : PeerName(peer)});
      continue;
    }
    if (errno == EAGAIN) return;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      Log(LogLevel::kWarning, "cannot accept connections for the moment",
          {{"address", FormatAddress(address_)}, {"error", std::strerror(errno)}});
      watch_.Cancel();
      pause_ = loop_.After(kPauseWhenFull, [this] {
        watch_ = loop_.WatchReadable(fd_.get(), [this] { AcceptAll(); });
      });
      return;
    }
    // The peer went before it was accepted: try the next.
  }
}

}  // namespace optcache::net
