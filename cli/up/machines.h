#pragma once

// The simulated machines of `optcache up`: each is a node and a sidecar.

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/memory_room.h"
#include "base/result.h"
#include "cli/up/dataset_setup.h"
#include "cli/up/supervisor.h"
#include "coordination/status.h"

namespace optcache::cli {

// What stays the same as long as `up` runs, also when a part is started again.
struct Machine {
  std::uint32_t index = 0;
  std::string socket;       // for training processes
  std::string node_socket;  // of the node, for other nodes and the sidecar
  std::uint16_t node_http_port = 0;
  std::uint16_t sidecar_http_port = 0;
  std::uint16_t s3_port = 0;  // of the sidecar, if it serves by S3
};

struct MachineOptions {
  std::string program_dir;  // where optcache-node and optcache-sidecar are
  std::string coordinator;  // address of its control API
  std::string log_dir;
  ByteCount memory = 0;         // payload bytes of each node
  std::string disk;             // folder that has one for each node; empty: memory alone
  ByteCount disk_capacity = 0;  // of files, of each node
  ByteCount arena = 0;          // of each sidecar
  ByteCount overflow = 0;       // beside the arena, for what it has no room for
  ByteCount computed = 0;       // of each sidecar for computed samples
  std::string ca_file;    // that sidecars trust instead of the system's certificates; empty: none
  std::string headspace;  // what sidecars are to measure; empty: nothing
  bool s3 = false;        // sidecars serve their datasets by S3, too
  std::vector<std::string> samplers;  // NAME=SAMPLER, the order in which that is read by S3
  std::vector<std::uint32_t> users;   // whose processes may read, beside root
};

// kInvalidArgument: together they ask for more memory than there is.
Status CheckMemory(std::uint32_t machines, const MachineOptions& each, const MemoryRoom& total);

struct SocketDirs {
  std::string clients;   // for sockets of training processes
  std::string own_user;  // for those that no other user may reach
};

// kInvalidArgument: the path is too long for a socket; `flag` names the folder.
Status CheckSocketPath(const std::string& path, const char* flag);

// Gives each machine sockets and free ports of the loopback interface. Errors as CheckSocketPath.
Result<std::vector<Machine>> MakeMachines(std::uint32_t count, const SocketDirs& dirs);

coordination::SidecarStatus StatusOfSidecar(const Machine& machine);
std::string MetricsOfNode(const Machine& machine);  // URL
std::string S3Of(const Machine& machine);           // URL of the sidecar's endpoint
// What a shell takes as it stands, whatever is in `value`: export NAME=VALUE.
std::string ExportOf(const std::string& name, const std::string& value);
ChildSpec NodeOf(const Machine& machine, const MachineOptions& options);
ChildSpec SidecarOf(const Machine& machine, const MachineOptions& options,
                    const std::vector<ReadyDataset>& datasets);

}  // namespace optcache::cli
