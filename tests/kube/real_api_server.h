#pragma once

// A real kube-apiserver over a real etcd, on loopback, for one test program.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kube/api_client.h"
#include "support/temp_dir.h"

namespace optcache::kube {

// A child process, which does not outlive this one.
class Process {
 public:
  Process() = default;
  ~Process() { Kill(); }
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  Process& operator=(Process&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }

  // Its output goes to `log`.
  static Process Start(const std::vector<std::string>& command, const std::string& log);
  // At once, without a chance to say goodbye.
  void Kill();

 private:
  pid_t pid_ = 0;
};

// Not thread-safe.
class RealApiServer {
 public:
  // Directories with etcd and kube-apiserver; "" if there is none: OPTCACHE_CLUSTER_BIN lists them.
  static std::string FindBinaries();

  // `bin` as from FindBinaries. CHECKs that it works.
  explicit RealApiServer(const std::string& bin);

  // As the cluster's administrator, by token; verified as kubernetes.default.svc.
  ApiAccess admin() const { return AccessOf("admin-token", port_); }
  // The same by a second server over the same etcd, which must have been started.
  ApiAccess admin_elsewhere() const { return AccessOf("admin-token", second_port_); }
  // As a user without any rights.
  ApiAccess nobody() const { return AccessOf("nobody-token", port_); }
  const std::string& folder() const { return dir_.path(); }

  void KillApiServer() { api_server_.Kill(); }
  void StartApiServer() { api_server_ = StartApiServerAt(port_); }
  void StartSecondApiServer() { second_ = StartApiServerAt(second_port_); }
  void KillSecondApiServer() { second_.Kill(); }
  // The last lines of the API server's log, for failures.
  std::string Log() const;

 private:
  ApiAccess AccessOf(const std::string& token, std::uint16_t port) const;
  Process StartApiServerAt(std::uint16_t port) const;
  void MakeCertificates() const;

  const std::string bin_;
  TempDir dir_;
  std::uint16_t etcd_port_ = 0;
  std::uint16_t etcd_peer_port_ = 0;
  std::uint16_t port_ = 0;
  std::uint16_t second_port_ = 0;
  Process etcd_;
  Process api_server_;
  Process second_;
};

}  // namespace optcache::kube
