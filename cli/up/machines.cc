// Makes the command lines of the nodes and sidecars of `optcache up`, and chooses their sockets and
// ports.
//
// Each free port is found by a socket that is bound to port 0 and held until all are chosen, so no
// port is chosen twice. A child binds its port later; a program that takes it in between makes that
// start fail.

#include "cli/up/machines.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/unique_fd.h"

namespace optcache::cli {
namespace {

constexpr std::size_t kSocketPathMax = sizeof(sockaddr_un::sun_path) - 1;

std::string Loopback(std::uint16_t port) {
  return fmt::format("127.0.0.1:{}", port);
}

std::string MetricsUrl(std::uint16_t port) {
  return fmt::format("http://{}/metrics", Loopback(port));
}

std::string AddressOfNode(const Machine& machine) {
  return "unix:" + machine.node_socket;
}

std::string SidecarName(const Machine& machine) {
  return fmt::format("sidecar-{}", machine.index);
}

// What a sidecar is told of a dataset.
void AddFlagsOf(const ReadyDataset& dataset, std::vector<std::string>& command) {
  const auto add = [&](const char* flag, const std::string& value) {
    command.emplace_back(flag);
    command.push_back(dataset.spec.name + "=" + value);
  };
  add("--dataset", dataset.manifest_file + "=" + dataset.store);
  if (!dataset.keys_folder.empty()) add("--keys", dataset.keys_folder);
  const api::Limits& limits = dataset.limits;
  if (limits.requests_per_second > 0)
    add("--requests-per-second", std::to_string(limits.requests_per_second));
  if (limits.bytes_per_second > 0)
    add("--bytes-per-second", std::to_string(limits.bytes_per_second));
  if (dataset.patience != dataset::kPatience) {
    const auto patience = std::chrono::duration_cast<std::chrono::seconds>(dataset.patience);
    add("--patience", fmt::format("{}s", patience.count()));
  }
  const dataset::StorePrice& price = dataset.price;
  if (price.per_request > 0) add("--price-per-request", dataset::FormatPrice(price.per_request));
  if (price.per_gib > 0) add("--price-per-gib", dataset::FormatPrice(price.per_gib));
}

// Listening sockets that hold their ports until all ports are chosen, so that none is given twice.
class PortPicker {
 public:
  Result<std::uint16_t> Pick() {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof address;
    if (!fd.valid() || ::bind(fd.get(), generic, length) != 0 ||
        ::getsockname(fd.get(), generic, &length) != 0) {
      return Error(ErrnoStatus(errno, "cannot find a free port"));
    }
    held_.push_back(std::move(fd));
    return ntohs(address.sin_port);
  }

 private:
  std::vector<UniqueFd> held_;
};

}  // namespace

Status CheckMemory(std::uint32_t machines, const MachineOptions& each, const MemoryRoom& total) {
  const ByteCount for_sidecars = each.arena + each.overflow + each.computed;
  const auto of_all = static_cast<double>(machines) *
                      (static_cast<double>(each.memory) + static_cast<double>(for_sidecars));
  if (of_all <= static_cast<double>(total.bytes)) return OkStatus();
  return {Code::kInvalidArgument,
          fmt::format("{} machine{} with {} for samples and {} for the sidecar each: more than the "
                      "{} of {}; lower --memory, --arena or the capacity of the datasets",
                      machines, machines == 1 ? "" : "s", FormatBytes(each.memory),
                      FormatBytes(for_sidecars), FormatBytes(total.bytes), total.limited_by)};
}

Status CheckSocketPath(const std::string& path, const char* flag) {
  if (path.size() <= kSocketPathMax) return OkStatus();
  return {Code::kInvalidArgument,
          fmt::format("{} is {} bytes long, a socket's path may have {}: choose a shorter {}", path,
                      path.size(), kSocketPathMax, flag)};
}

Result<std::vector<Machine>> MakeMachines(std::uint32_t count, const SocketDirs& dirs) {
  PortPicker ports;
  std::vector<Machine> machines;
  for (std::uint32_t i = 0; i < count; ++i) {
    Machine& machine = machines.emplace_back();
    machine.index = i;
    machine.socket = fmt::format("{}/machine-{}.sock", dirs.clients, i);
    machine.node_socket = fmt::format("{}/node-{}.sock", dirs.own_user, i);
    RETURN_IF_ERROR(CheckSocketPath(machine.node_socket, "--state"));
    RETURN_IF_ERROR(CheckSocketPath(machine.socket, "--socket-dir"));
    ASSIGN_OR_RETURN(machine.node_http_port, ports.Pick());
    ASSIGN_OR_RETURN(machine.sidecar_http_port, ports.Pick());
    ASSIGN_OR_RETURN(machine.s3_port, ports.Pick());
  }
  return machines;
}

coordination::SidecarStatus StatusOfSidecar(const Machine& machine) {
  return {.name = SidecarName(machine),
          .socket = machine.socket,
          .metrics = MetricsUrl(machine.sidecar_http_port)};
}

std::string MetricsOfNode(const Machine& machine) {
  return MetricsUrl(machine.node_http_port);
}

std::string S3Of(const Machine& machine) {
  return fmt::format("http://{}", Loopback(machine.s3_port));
}

std::string ExportOf(const std::string& name, const std::string& value) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-:";
  if (value.find_first_not_of(kPlain) == std::string::npos)
    return fmt::format("export {}={}", name, value);
  std::string quoted;
  for (const char c : value)
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return fmt::format("export {}='{}'", name, quoted);
}

ChildSpec NodeOf(const Machine& machine, const MachineOptions& options) {
  const std::string name = fmt::format("node-{}", machine.index);
  ChildSpec spec{
      .name = name,
      .command = {options.program_dir + "/optcache-node", "--name", name, "--listen",
                  AddressOfNode(machine), "--metrics-address", Loopback(machine.node_http_port),
                  "--coordinator", options.coordinator, "--memory", std::to_string(options.memory)},
      .log_file = fmt::format("{}/{}.log", options.log_dir, name)};
  if (!options.disk.empty()) {
    spec.command.insert(spec.command.end(), {"--disk", options.disk + "/" + name, "--disk-capacity",
                                             std::to_string(options.disk_capacity)});
  }
  return spec;
}

ChildSpec SidecarOf(const Machine& machine, const MachineOptions& options,
                    const std::vector<ReadyDataset>& datasets) {
  const std::string name = SidecarName(machine);
  ChildSpec spec{
      .name = name,
      .command = {options.program_dir + "/optcache-sidecar", "--name", name, "--socket",
                  machine.socket, "--node", AddressOfNode(machine), "--metrics-address",
                  Loopback(machine.sidecar_http_port), "--arena", std::to_string(options.arena),
                  "--overflow", std::to_string(options.overflow)},
      .log_file = fmt::format("{}/{}.log", options.log_dir, name)};
  if (options.computed > 0) {
    spec.command.insert(spec.command.end(), {"--computed", std::to_string(options.computed)});
  }
  if (!options.ca_file.empty()) {
    spec.command.insert(spec.command.end(), {"--ca-file", options.ca_file});
  }
  if (!options.headspace.empty()) {
    spec.command.insert(spec.command.end(), {"--headspace", options.headspace});
  }
  if (options.s3) {
    spec.command.insert(spec.command.end(), {"--s3", Loopback(machine.s3_port), "--pod-index",
                                             std::to_string(machine.index)});
  }
  for (const std::uint32_t user : options.users)
    spec.command.insert(spec.command.end(), {"--allow-uid", std::to_string(user)});
  for (const std::string& sampler : options.samplers)
    spec.command.insert(spec.command.end(), {"--sampler", sampler});
  for (const ReadyDataset& dataset : datasets)
    AddFlagsOf(dataset, spec.command);
  return spec;
}

}  // namespace optcache::cli
