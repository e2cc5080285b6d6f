#include "cli/up.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/files.h"
#include "cli/dataset_setup.h"
#include "cli/leftovers.h"
#include "cli/live_screen.h"
#include "cli/machines.h"
#include "cli/memory_split.h"
#include "cli/state_dir.h"
#include "cli/status_view.h"
#include "cli/supervisor.h"
#include "control/control_server.h"
#include "net/stop_signals.h"

namespace optcache::cli {
namespace {

constexpr const char* kMore =
    R"(Runs the coordinator, and for each machine a node and a sidecar, as processes of this machine. Training
processes connect through OPTCACHE_SOCKET, which is printed. Ctrl-C stops everything. If it is killed, nodes
and sidecars go on; the next `optcache up` with the same --state ends them and takes their place.

Examples:
  optcache up -f manifests/samples/images.yaml
  Two machines of 2 GiB each, to see samples move between them:
    optcache up -f images.yaml --machines 2 --memory 2Gi)";

constexpr Duration kSplitEvery = std::chrono::seconds(1);
constexpr Duration kChildTick = std::chrono::milliseconds(100);
constexpr Duration kLeftoverGrace = std::chrono::seconds(5);
constexpr Duration kScreenEvery = std::chrono::seconds(1);
constexpr Duration kLineEvery = std::chrono::seconds(10);
constexpr std::uint32_t kMachinesMax = 64;
constexpr std::uint16_t kDefaultPort = 7450;

struct UpRequest {
  std::vector<std::string> files;
  std::uint32_t machines = 1;
  std::string memory;
  std::string arena = "256Mi";
  std::string overflow = "256Mi";
  std::string computed = "0";
  std::string state_dir = DefaultStateDir();
  std::string socket_dir;
  std::string ca_file;
  std::uint16_t port = kDefaultPort;
  bool reindex = false;
};

std::string MustBeQuantity(const std::string& text) {
  const Result<ByteCount> bytes = ParseQuantity(text);
  return bytes ? "" : bytes.error().message();
}

void Say(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

Result<std::vector<ReadyDataset>> SetUpDatasets(const UpRequest& request, const StateDir& state) {
  ASSIGN_OR_RETURN(const config::Configuration configuration, ReadConfiguration(request.files));
  RETURN_IF_ERROR(state.Subfolder("manifests"));
  const SetupOptions options{.state_dir = state.path(),
                             .ca_file = request.ca_file,
                             .reindex = request.reindex,
                             .say = Say};
  std::vector<ReadyDataset> datasets;
  for (const config::Dataset& dataset : configuration.datasets) {
    ASSIGN_OR_RETURN(ReadyDataset ready,
                     SetUpDataset(dataset, configuration.PlanOf(dataset), options));
    const coordination::DatasetSpec& spec = ready.spec;
    Say(fmt::format("{}: {} samples, {}, capacity {} ({:.0f} %)", spec.name, spec.samples,
                    FormatBytes(spec.bytes), FormatBytes(spec.capacity),
                    100.0 * static_cast<double>(spec.capacity) / static_cast<double>(spec.bytes)));
    for (const std::string& note : ready.notes)
      Say(fmt::format("{}: {}", spec.name, note));
    datasets.push_back(std::move(ready));
  }
  return datasets;
}

// What each node offers if the user does not say: together what the datasets ask for.
ByteCount EvenMemory(const std::vector<ReadyDataset>& datasets, std::uint32_t machines) {
  ByteCount wanted = 0;
  for (const ReadyDataset& dataset : datasets)
    wanted += dataset.spec.capacity;
  return wanted / machines + 1;
}

std::vector<WantedDataset> WantedOf(const std::vector<ReadyDataset>& datasets) {
  std::vector<WantedDataset> wanted;
  wanted.reserve(datasets.size());
  for (const ReadyDataset& dataset : datasets)
    wanted.push_back({.spec = dataset.spec, .floor = dataset.floor});
  return wanted;
}

// The folder of this program: the others lie beside it.
std::string ProgramDir() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "." : self.parent_path().string();
}

// Everything that runs while `up` runs.
class Cluster {
 public:
  Cluster(const StateDir& state, std::vector<ReadyDataset> datasets)
      : state_(state),
        datasets_(std::move(datasets)),
        screen_(STDOUT_FILENO),
        supervisor_({}, [this](const std::string& line) { screen_.Say(line); }),
        split_(WantedOf(datasets_)) {}
  ~Cluster() { state_.RemoveCoordinator(); }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  Status Start(const UpRequest& request);
  // Until SIGINT, SIGTERM or a child that cannot be started, and all children have stopped.
  Status Run();

 private:
  Status StartCoordinator(std::uint16_t port);
  Status StartMachines(const UpRequest& request);
  void TickChildren();
  void SplitMemory();
  void Stop();
  void Show();

  const Clock& clock_ = SystemClock();
  const StateDir& state_;
  std::vector<ReadyDataset> datasets_;
  net::EventLoop loop_;
  LiveScreen screen_;
  Supervisor supervisor_;
  std::unique_ptr<control::ControlServer> server_;
  MemorySplit split_;
  net::Timer split_timer_;
  net::Timer child_timer_;
  net::Timer screen_timer_;
  bool stopping_ = false;
};

Status Cluster::Start(const UpRequest& request) {
  RETURN_IF_ERROR(StartCoordinator(request.port));
  return StartMachines(request);
}

Status Cluster::StartCoordinator(std::uint16_t port) {
  auto server = control::ControlServer::Start(loop_, clock_, port);
  if (!server && server.error().code() == Code::kConflict) {
    return {Code::kConflict, fmt::format("port {} is in use: stop what listens there (another "
                                         "`optcache up`?) or choose another with --port",
                                         port)};
  }
  if (!server) return std::move(server).error();
  server_ = *std::move(server);
  std::vector<coordination::DatasetSpec> specs;
  std::map<std::string, control::ManifestBytes> manifests;
  for (const ReadyDataset& dataset : datasets_) {
    specs.push_back(dataset.spec);
    manifests.emplace(dataset.spec.manifest_digest, dataset.manifest);
  }
  server_->service().SetDatasets(std::move(specs), std::move(manifests));
  Say("coordinator: " + server_->url());
  return state_.WriteCoordinator(server_->url());
}

Status Cluster::StartMachines(const UpRequest& request) {
  MachineOptions options{
      .program_dir = ProgramDir(), .coordinator = server_->url(), .ca_file = request.ca_file};
  ASSIGN_OR_RETURN(options.log_dir, state_.Subfolder("logs"));
  ASSIGN_OR_RETURN(const std::size_t ended, EndLeftovers(options.log_dir, kLeftoverGrace));
  if (ended > 0) Say(fmt::format("ended {} processes of an `optcache up` that was killed", ended));
  ASSIGN_OR_RETURN(options.arena, ParseQuantity(request.arena));
  ASSIGN_OR_RETURN(options.overflow, ParseQuantity(request.overflow));
  ASSIGN_OR_RETURN(options.computed, ParseQuantity(request.computed));
  options.memory = EvenMemory(datasets_, request.machines);
  if (!request.memory.empty()) {
    ASSIGN_OR_RETURN(options.memory, ParseQuantity(request.memory));
  }
  std::string socket_dir = request.socket_dir;
  if (socket_dir.empty()) {
    ASSIGN_OR_RETURN(socket_dir, state_.Subfolder("sockets"));
  }
  ASSIGN_OR_RETURN(const std::vector<Machine> machines, MakeMachines(request.machines, socket_dir));
  std::vector<coordination::SidecarStatus> sidecars;
  sidecars.reserve(machines.size());
  for (const Machine& machine : machines)
    sidecars.push_back(StatusOfSidecar(machine));
  server_->service().SetSidecars(sidecars);
  for (const Machine& machine : machines) {
    RETURN_IF_ERROR(supervisor_.Start(NodeOf(machine, options), clock_.Now()));
    RETURN_IF_ERROR(supervisor_.Start(SidecarOf(machine, options, datasets_), clock_.Now()));
    Say(fmt::format("machine {} ({}): export OPTCACHE_SOCKET={}", machine.index,
                    FormatBytes(options.memory), machine.socket));
    Say(fmt::format("machine {}: metrics at {} (node), {} (sidecar)", machine.index,
                    MetricsOfNode(machine), StatusOfSidecar(machine).metrics));
  }
  return OkStatus();
}

void Cluster::TickChildren() {
  supervisor_.Tick(clock_.Now());
  if (!stopping_ && !supervisor_.failure().ok()) Stop();
  if (stopping_ && supervisor_.running() == 0) return loop_.Stop();
  child_timer_ = loop_.After(kChildTick, [this] { TickChildren(); });
}

void Cluster::SplitMemory() {
  if (auto specs = split_.Update(server_->service().Status(), clock_.Now()))
    server_->service().SetDatasets(*std::move(specs), {});
  split_timer_ = loop_.After(kSplitEvery, [this] { SplitMemory(); });
}

void Cluster::Stop() {
  screen_timer_.Cancel();
  stopping_ = true;
  screen_.Say("stopping");
  supervisor_.Stop(clock_.Now());
}

void Cluster::Show() {
  const coordination::ClusterStatus status = server_->service().Status();
  if (screen_.is_terminal()) {
    screen_.Draw(FormatStatus(status));
  } else {
    screen_.Say(FormatStatusLine(status));
  }
  screen_timer_ =
      loop_.After(screen_.is_terminal() ? kScreenEvery : kLineEvery, [this] { Show(); });
}

Status Cluster::Run() {
  const net::StopSignals signals(loop_, [&] {
    if (!stopping_) Stop();
  });
  TickChildren();
  SplitMemory();
  Show();
  loop_.Run();
  return supervisor_.failure();
}

Status Up(const UpRequest& request) {
  ASSIGN_OR_RETURN(const StateDir state, StateDir::Open(request.state_dir));
  // Indexing may take long: Ctrl-C just ends it.
  ASSIGN_OR_RETURN(std::vector<ReadyDataset> datasets, SetUpDatasets(request, state));
  RaiseOpenFilesLimit();
  net::BlockStopSignals();
  Cluster cluster(state, std::move(datasets));
  RETURN_IF_ERROR(cluster.Start(request));
  return cluster.Run();
}

}  // namespace

void AddUpCommand(CLI::App& app, Verb& chosen) {
  CLI::App* const command = app.add_subcommand("up", "Run a whole cache on this machine");
  command->footer(kMore);
  const auto request = std::make_shared<UpRequest>();
  command->add_option("--file,-f", request->files, "YAML of Datasets and CachePlans")
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("--machines", request->machines, "How many machines to simulate")
      ->check(CLI::Range(1U, kMachinesMax))
      ->capture_default_str();
  command
      ->add_option("--memory", request->memory,
                   "Bytes of samples that each machine offers; default: together what the "
                   "datasets ask for")
      ->check(MustBeQuantity);
  command->add_option("--arena", request->arena, "Bytes of shared memory of each sidecar")
      ->check(MustBeQuantity)
      ->capture_default_str();
  command
      ->add_option("--overflow", request->overflow,
                   "Bytes beside it, for samples that it has no room for")
      ->capture_default_str();
  command
      ->add_option("--computed", request->computed,
                   "Bytes of shared memory of each sidecar for computed samples; 0: none are kept")
      ->check(MustBeQuantity)
      ->capture_default_str();
  command->add_option("--state", request->state_dir, "Folder for manifests and logs")
      ->capture_default_str();
  command
      ->add_option("--socket-dir", request->socket_dir,
                   "Folder for the sockets; default: in the state folder")
      ->check(CLI::ExistingDirectory);
  command
      ->add_option("--ca-file", request->ca_file,
                   "Certificates to trust instead of the system's, for https")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  command->add_option("--port", request->port, "Port of the coordinator; 0: any")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->add_flag("--reindex", request->reindex, "Index the sources again");
  command->callback([request, &chosen] { chosen = [request] { return Up(*request); }; });
}

}  // namespace optcache::cli
