#include "bench/handshake_attack.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <new>
#include <thread>
#include <vector>

#include <openssl/ssl.h>

#include "base/check.h"
#include "base/unique_fd.h"

namespace optcache::bench {
namespace {

constexpr const char* kFrom = "127.0.0.2";

using Counter = std::atomic<std::uint64_t>;
static_assert(Counter::is_always_lock_free, "two processes share it");

sockaddr_in At(const char* host, std::uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  CHECK(::inet_pton(AF_INET, host, &address.sin_addr) == 1);
  return address;
}

// Closed by a reset: else the ports of those that are over would soon be used up.
UniqueFd Connect(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in own = At(kFrom, 0);
  const sockaddr_in server = At("127.0.0.1", port);
  const linger reset = {.l_onoff = 1, .l_linger = 0};
  const timeval patience = {.tv_sec = 5, .tv_usec = 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(own)) != 0) return {};
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&server), sizeof(server)) != 0) {
    return {};
  }
  return fd;
}

[[noreturn]] void ShakeHandsForever(SSL_CTX& context, std::uint16_t port, Counter& done) {
  for (;;) {
    const UniqueFd fd = Connect(port);
    if (!fd.valid()) continue;
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(&context), &SSL_free);
    SSL_set_fd(ssl.get(), fd.get());
    if (SSL_connect(ssl.get()) == 1) ++done;
  }
}

[[noreturn]] void Attack(std::uint16_t port, int connections, Counter& done) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_IGN);
  SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);
  std::vector<std::thread> threads;
  for (int i = 1; i < connections; ++i)
    threads.emplace_back([&] { ShakeHandsForever(*context, port, done); });
  ShakeHandsForever(*context, port, done);
}

}  // namespace

HandshakeAttack::HandshakeAttack(std::uint16_t port, int connections) {
  void* const shared =
      ::mmap(nullptr, sizeof(Counter), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  done_ = new (shared) Counter(0);
  pid_ = ::fork();
  CHECK(pid_ >= 0);
  if (pid_ == 0) Attack(port, connections, *done_);
}

HandshakeAttack::~HandshakeAttack() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  ::munmap(done_, sizeof(Counter));
}

}  // namespace optcache::bench
