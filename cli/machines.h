#pragma once

// The simulated machines of `optcache up`: each is a node and a sidecar.

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "cli/dataset_setup.h"
#include "cli/supervisor.h"
#include "coordination/status.h"

namespace optcache::cli {

// What stays the same as long as `up` runs, also when a part is started again.
struct Machine {
  std::uint32_t index = 0;
  std::string socket;  // for training processes
  std::uint16_t node_port = 0;
  std::uint16_t node_http_port = 0;
  std::uint16_t sidecar_http_port = 0;
};

struct MachineOptions {
  std::string program_dir;  // where optcache-node and optcache-sidecar are
  std::string coordinator;  // URL
  std::string log_dir;
  ByteCount memory = 0;    // payload bytes of each node
  ByteCount arena = 0;     // of each sidecar
  ByteCount overflow = 0;  // beside the arena, for what it has no room for
  ByteCount computed = 0;  // of each sidecar for computed samples
  std::string ca_file;     // that sidecars trust instead of the system's certificates; empty: none
};

// Gives each machine free ports of the loopback interface and a socket in `socket_dir`.
// kInvalidArgument: the path would be too long for a socket.
Result<std::vector<Machine>> MakeMachines(std::uint32_t count, const std::string& socket_dir);

coordination::SidecarStatus StatusOfSidecar(const Machine& machine);
std::string MetricsOfNode(const Machine& machine);  // URL
ChildSpec NodeOf(const Machine& machine, const MachineOptions& options);
ChildSpec SidecarOf(const Machine& machine, const MachineOptions& options,
                    const std::vector<ReadyDataset>& datasets);

}  // namespace optcache::cli
