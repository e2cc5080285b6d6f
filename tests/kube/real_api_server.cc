#include "kube/real_api_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "base/check.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/unique_fd.h"
#include "pki/pki.h"

namespace optcache::kube {
namespace {

constexpr std::int64_t kDay = 86'400;

// Below those that the kernel gives to clients, so that none of theirs takes it meanwhile.
constexpr std::uint16_t kFirstPort = 14'000;
constexpr std::uint16_t kLastPort = 19'999;

// That nobody listens on now.
std::uint16_t FreePort() {
  static std::mt19937 random{std::random_device{}()};
  std::uniform_int_distribution<std::uint16_t> ports(kFirstPort, kLastPort);
  while (true) {
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(ports(random));
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket.get(), generic, sizeof(address)) == 0) return ntohs(address.sin_port);
  }
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

std::string Loopback(std::uint16_t port) {
  return "http://127.0.0.1:" + std::to_string(port);
}

}  // namespace

Process Process::Start(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& word : command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  Process process;
  process.pid_ = ::fork();
  CHECK(process.pid_ >= 0);
  if (process.pid_ > 0) return process;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(output, 1);
  ::dup2(output, 2);
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

void Process::Kill() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

std::string RealApiServer::FindBinaries() {
  const char* list = std::getenv("OPTCACHE_CLUSTER_BIN");
  std::istringstream folders(list == nullptr ? "" : list);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::filesystem::path path(folder);
    if (std::filesystem::exists(path / "etcd") &&
        std::filesystem::exists(path / "kube-apiserver")) {
      return folder;
    }
  }
  return "";
}

RealApiServer::RealApiServer(const std::string& bin)
    : bin_(bin),
      etcd_port_(FreePort()),
      etcd_peer_port_(FreePort()),
      port_(FreePort()),
      second_port_(FreePort()) {
  MakeCertificates();
  Write(dir_.Join("tokens.csv"), "admin-token,admin,1,\"system:masters\"\nnobody-token,nobody,2\n");
  for (const char* name : {"admin-token", "nobody-token"})
    Write(dir_.Join(name), name);
  etcd_ = Process::Start({bin_ + "/etcd", "--name=test", "--data-dir=" + dir_.Join("etcd"),
                          "--unsafe-no-fsync", "--listen-client-urls=" + Loopback(etcd_port_),
                          "--advertise-client-urls=" + Loopback(etcd_port_),
                          "--listen-peer-urls=" + Loopback(etcd_peer_port_),
                          "--initial-advertise-peer-urls=" + Loopback(etcd_peer_port_),
                          "--initial-cluster=test=" + Loopback(etcd_peer_port_)},
                         dir_.Join("etcd.log"));
  StartApiServer();
}

void RealApiServer::MakeCertificates() const {
  const auto now = static_cast<std::int64_t>(SystemClock().UnixSeconds());
  const pki::Validity validity = {.not_before = now - kDay, .not_after = now + kDay};
  const std::string ca_key = *pki::MakeKey();
  const std::string ca = *pki::MakeCa(ca_key, "test", validity);
  const std::string key = *pki::MakeKey();
  const auto certificate = pki::Sign(ca, ca_key,
                                     {.public_key = *pki::PublicKeyOf(key),
                                      .dns_names = {"kubernetes.default.svc"},
                                      .usages = {.server = true, .client = true},
                                      .validity = validity});
  CHECK(certificate.has_value());
  Write(dir_.Join("ca.crt"), ca);
  Write(dir_.Join("server.crt"), *certificate);
  Write(dir_.Join("server.key"), key);
  const std::string tokens_key = *pki::MakeKey();
  Write(dir_.Join("sa.key"), tokens_key);
  Write(dir_.Join("sa.pub"), *pki::PublicKeyOf(tokens_key));
  // Of a CA that has signed nothing here.
  Write(dir_.Join("other-ca.crt"), *pki::MakeCa(*pki::MakeKey(), "other", validity));
}

Process RealApiServer::StartApiServerAt(std::uint16_t port) const {
  return Process::Start(
      {bin_ + "/kube-apiserver", "--bind-address=127.0.0.1", "--endpoint-reconciler-type=none",
       "--secure-port=" + std::to_string(port), "--etcd-servers=" + Loopback(etcd_port_),
       "--etcd-compaction-interval=5s", "--tls-cert-file=" + dir_.Join("server.crt"),
       "--tls-private-key-file=" + dir_.Join("server.key"),
       "--service-account-key-file=" + dir_.Join("sa.pub"),
       "--service-account-signing-key-file=" + dir_.Join("sa.key"),
       "--service-account-issuer=https://kubernetes.default.svc",
       "--token-auth-file=" + dir_.Join("tokens.csv"), "--authorization-mode=RBAC",
       "--disable-admission-plugins=ServiceAccount", "--service-cluster-ip-range=10.96.0.0/16",
       "--cert-dir=" + dir_.path(), "--shutdown-delay-duration=0s"},
      dir_.Join("kube-apiserver.log"));
}

ApiAccess RealApiServer::AccessOf(const std::string& token, std::uint16_t port) const {
  return {.server = "https://127.0.0.1:" + std::to_string(port),
          .ca_file = dir_.Join("ca.crt"),
          .token_file = dir_.Join(token)};
}

std::string RealApiServer::Log() const {
  constexpr ByteCount kLastBytes = 4096;
  return ReadFileEnd(dir_.Join("kube-apiserver.log"), kLastBytes).value_or("no log");
}

}  // namespace optcache::kube
