// Runs a cache on one machine: the coordinator in this process, a node and a sidecar as children
// for each machine.
//
//   ReadConfiguration ─► SetUpDatasets (indexes) ─► LocalCluster::Start
//   Start:  coordinator ─► sockets and ports of all machines ─► children ─► list of sources
//   Run:    TickChildren (100 ms)   SplitMemory (1 s)   Show (1 s; 10 s without a terminal)
//
// One loop turns all of it. Sockets and ports are chosen once and stay, so a child that is started
// again is found where it was. Before new children start, those that a killed `up` left behind are
// ended. Stop is idempotent: it asks all children to end, and Run returns once none is left. What
// others find a running cache by (the coordinator's address, the list of sources) is removed by the
// destructor.

#include "cli/up/local_cluster.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/files.h"
#include "cli/local/dataset_name.h"
#include "cli/status/status_view.h"
#include "cli/up/local_sources.h"
#include "cli/up/orphans.h"
#include "net/stop_signals.h"
#include "sampler/pod_order.h"

namespace optcache::cli {
namespace {

constexpr Duration kSplitEvery = std::chrono::seconds(1);
constexpr Duration kChildTick = std::chrono::milliseconds(100);
constexpr Duration kOrphanGrace = std::chrono::seconds(5);
constexpr Duration kScreenEvery = std::chrono::seconds(1);
constexpr Duration kLineEvery = std::chrono::seconds(10);
constexpr ByteCount kOverflow = 256_MiB;  // at least

std::string MustBeQuantity(const std::string& text) {
  const Result<ByteCount> bytes = ParseQuantity(text);
  return bytes ? "" : bytes.error().message();
}

// What each node offers if the user does not say: together what the datasets ask for.
ByteCount EvenMemory(const std::vector<ReadyDataset>& datasets, std::uint32_t machines) {
  ByteCount wanted = 0;
  for (const ReadyDataset& dataset : datasets)
    wanted += dataset.spec.capacity;
  return wanted / machines + 1;
}

// One sample is on its way to a process while another one is read.
ByteCount OverflowFor(const std::vector<ReadyDataset>& datasets) {
  ByteCount overflow = kOverflow;
  for (const ReadyDataset& dataset : datasets)
    overflow = std::max(overflow, 2 * dataset.largest);
  return overflow;
}

std::vector<WantedDataset> WantedOf(const std::vector<ReadyDataset>& datasets) {
  std::vector<WantedDataset> wanted;
  wanted.reserve(datasets.size());
  for (const ReadyDataset& dataset : datasets)
    wanted.push_back({.spec = dataset.spec, .guaranteed = dataset.guaranteed});
  return wanted;
}

LocalSources SourcesOf(const std::vector<ReadyDataset>& datasets, const std::string& ca_file) {
  LocalSources sources{.ca_file = ca_file, .datasets = {}};
  for (const ReadyDataset& dataset : datasets) {
    sources.datasets.push_back({.name = dataset.spec.name,
                                .manifest_file = dataset.manifest_file,
                                .store = dataset.store,
                                .order = dataset.order,
                                .keys_folder = dataset.keys_folder,
                                .limits = dataset.limits,
                                .patience = dataset.patience});
  }
  return sources;
}

struct OfDataset {
  std::string dataset;  // qualified
  std::string value;
};

// `text` is NAME=VALUE, as `flag` has it, with the name of one of them.
Result<OfDataset> ParseOfDataset(const char* flag, const char* value, const std::string& text,
                                 const std::vector<config::Dataset>& datasets) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return Error(
        Code::kInvalidArgument,
        fmt::format("{} '{}' is not NAME={}, with the NAME of one Dataset", flag, text, value));
  }
  Result<const config::Dataset*> dataset =
      FindDataset(datasets, text.substr(0, equals), &config::Dataset::QualifiedName);
  if (!dataset)
    return Error(std::move(dataset).error().WithContext(fmt::format("{} '{}'", flag, text)));
  return OfDataset{.dataset = (*dataset)->QualifiedName(), .value = text.substr(equals + 1)};
}

// What each sidecar would refuse at its start.
Status CheckSampler(const std::string& text, const std::vector<config::Dataset>& datasets) {
  ASSIGN_OR_RETURN(const OfDataset order, ParseOfDataset("--sampler", "SAMPLER", text, datasets));
  auto parsed = sampler::ParsePodOrder(order.value);
  if (!parsed) return std::move(parsed).error().WithContext(fmt::format("--sampler '{}'", text));
  return OkStatus();
}

// Absolute, since sidecars may run elsewhere; by dataset.
Result<std::map<std::string, std::string>> KeysFolders(
    const std::vector<std::string>& texts, const std::vector<config::Dataset>& datasets) {
  std::map<std::string, std::string> folders;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(const OfDataset keys, ParseOfDataset("--keys", "FOLDER", text, datasets));
    const auto refuse = [&text](const std::string& why) {
      return Error(Code::kInvalidArgument, fmt::format("--keys '{}': {}", text, why));
    };
    const auto dataset = std::ranges::find(datasets, keys.dataset, &config::Dataset::QualifiedName);
    if (std::holds_alternative<api::FileSource>(dataset->spec.source))
      return refuse(keys.dataset + " lies in a folder, which is read without");
    std::error_code unreadable;
    if (!std::filesystem::is_directory(keys.value, unreadable))
      return refuse("there is no folder " + keys.value);
    const std::string folder = std::filesystem::absolute(keys.value).lexically_normal().string();
    if (!folders.emplace(keys.dataset, folder).second)
      return refuse("keys of " + keys.dataset + " are given twice");
  }
  return folders;
}

// " (30 %)"; nothing if all samples are empty.
std::string CapacityShare(ByteCount capacity, ByteCount of) {
  if (of == 0) return "";
  return fmt::format(" ({:.0f} %)",
                     100.0 * static_cast<double>(capacity) / static_cast<double>(of));
}

}  // namespace

std::string ProgramDir() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "." : self.parent_path().string();
}

Result<std::vector<ReadyDataset>> SetUpDatasets(const LocalOptions& options, const StateDir& state,
                                                const SayLine& say) {
  ASSIGN_OR_RETURN(const config::Configuration configuration, ReadConfiguration(options.files));
  for (const std::string& sampler : options.samplers)
    RETURN_IF_ERROR(CheckSampler(sampler, configuration.datasets));
  ASSIGN_OR_RETURN(auto keys_folders, KeysFolders(options.keys, configuration.datasets));
  RETURN_IF_ERROR(state.Subfolder("manifests"));
  const SetupOptions setup{.state_dir = state.path(),
                           .ca_file = options.ca_file,
                           .keys_folders = std::move(keys_folders),
                           .reindex = options.reindex,
                           .has_disk = !options.disk.empty(),
                           .say = say};
  std::vector<ReadyDataset> datasets;
  for (const config::Dataset& dataset : configuration.datasets) {
    ASSIGN_OR_RETURN(ReadyDataset ready,
                     SetUpDataset(dataset, configuration.PlanOf(dataset), setup));
    const coordination::DatasetSpec& spec = ready.spec;
    say(fmt::format("{}: {} samples, {}, capacity {}{}", spec.name, spec.samples,
                    FormatBytes(spec.bytes), FormatBytes(spec.capacity),
                    CapacityShare(spec.capacity, spec.bytes)));
    for (const std::string& note : ready.notes)
      say(fmt::format("{}: {}", spec.name, note));
    datasets.push_back(std::move(ready));
  }
  return datasets;
}

LocalCluster::LocalCluster(const StateDir& state, std::vector<ReadyDataset> datasets, int fd)
    : clock_(SystemClock()),
      state_(state),
      datasets_(std::move(datasets)),
      screen_(fd),
      supervisor_({}, [this](const std::string& line) { screen_.Say(line); }),
      split_(WantedOf(datasets_)) {}

LocalCluster::~LocalCluster() {
  RemoveLocalSources(state_.path());
  state_.RemoveCoordinator();
}

Status LocalCluster::Start(const LocalOptions& options) {
  RETURN_IF_ERROR(StartCoordinator(options.port));
  RETURN_IF_ERROR(StartMachines(options));
  return WriteLocalSources(state_.path(), SourcesOf(datasets_, options.ca_file));
}

Status LocalCluster::StartCoordinator(std::uint16_t port) {
  ASSIGN_OR_RETURN(run_dir_, state_.PrivateSubfolder("run"));
  const std::string socket = run_dir_ + "/coordinator.sock";
  RETURN_IF_ERROR(CheckSocketPath(socket, "--state"));
  auto server = control::ControlServer::Start(loop_, clock_, {.address = "unix:" + socket});
  if (!server && server.error().code() != Code::kConflict) {
    return std::move(server).error().WithContext(
        "choose a folder of another filesystem with --state if this one has no Unix sockets");
  }
  if (!server) return std::move(server).error();
  server_ = *std::move(server);
  Status pages = server_->ServePages(port);
  if (pages.code() == Code::kConflict) {
    return {Code::kConflict, fmt::format("port {} is in use: stop what listens there (another "
                                         "`optcache up`?) or choose another with --port",
                                         port)};
  }
  RETURN_IF_ERROR(std::move(pages));
  std::vector<coordination::DatasetSpec> specs;
  std::map<std::string, control::ManifestBytes> manifests;
  for (const ReadyDataset& dataset : datasets_) {
    specs.push_back(dataset.spec);
    manifests.emplace(dataset.spec.manifest_digest, dataset.manifest);
  }
  server_->service().SetDatasets(std::move(specs), std::move(manifests));
  Say(fmt::format("coordinator: {}, metrics at {}", server_->url(), server_->metrics_url()));
  return state_.WriteCoordinator(server_->url());
}

Status LocalCluster::StartMachines(const LocalOptions& options) {
  MachineOptions each{.program_dir = ProgramDir(),
                      .coordinator = server_->url(),
                      .ca_file = options.ca_file,
                      .headspace = options.headspace,
                      .s3 = options.s3,
                      .samplers = options.samplers,
                      .users = options.users};
  each.users.push_back(::geteuid());
  ASSIGN_OR_RETURN(each.log_dir, state_.Subfolder("logs"));
  ASSIGN_OR_RETURN(const std::size_t ended, StopOrphans(each.log_dir, kOrphanGrace));
  if (ended > 0) Say(fmt::format("ended {} processes of an `optcache up` that was killed", ended));
  ASSIGN_OR_RETURN(each.arena, ParseQuantity(options.arena));
  each.overflow = OverflowFor(datasets_);
  if (!options.overflow.empty()) {
    ASSIGN_OR_RETURN(each.overflow, ParseQuantity(options.overflow));
  }
  ASSIGN_OR_RETURN(each.computed, ParseQuantity(options.computed));
  each.memory = EvenMemory(datasets_, options.machines);
  if (!options.memory.empty()) {
    ASSIGN_OR_RETURN(each.memory, ParseQuantity(options.memory));
  }
  RETURN_IF_ERROR(CheckMemory(options.machines, each, TotalMemory()));
  if (!options.disk.empty()) {
    each.disk = options.disk;
    ASSIGN_OR_RETURN(each.disk_capacity, ParseQuantity(options.disk_capacity));
  }
  std::string socket_dir = options.socket_dir;
  if (socket_dir.empty()) {
    ASSIGN_OR_RETURN(socket_dir, state_.Subfolder("sockets"));
  }
  // As it is printed, it is right in other folders, too, unless it is too long for a socket.
  std::error_code error;
  std::string whole = std::filesystem::absolute(socket_dir, error).lexically_normal().string();
  if (error) return ErrnoStatus(error.value(), "--socket-dir");
  if (whole.ends_with('/')) whole.pop_back();
  auto machines = MakeMachines(options.machines, {.clients = whole, .own_user = run_dir_});
  if (!machines)
    machines = MakeMachines(options.machines, {.clients = socket_dir, .own_user = run_dir_});
  if (!machines) return std::move(machines).error();
  machines_ = *std::move(machines);
  std::vector<coordination::SidecarStatus> sidecars;
  sidecars.reserve(machines_.size());
  for (const Machine& machine : machines_)
    sidecars.push_back(StatusOfSidecar(machine));
  server_->service().SetSidecars(sidecars);
  for (const Machine& machine : machines_)
    RETURN_IF_ERROR(StartMachine(machine, each));
  return OkStatus();
}

Status LocalCluster::StartMachine(const Machine& machine, const MachineOptions& options) {
  RETURN_IF_ERROR(supervisor_.Start(NodeOf(machine, options), clock_.Now()));
  RETURN_IF_ERROR(supervisor_.Start(SidecarOf(machine, options, datasets_), clock_.Now()));
  Say(fmt::format("machine {} ({}): to train on it, run in your shell", machine.index,
                  FormatBytes(options.memory)));
  Say(ExportOf("OPTCACHE_SOCKET", machine.socket));
  if (options.s3) Say(ExportOf("AWS_ENDPOINT_URL_S3", S3Of(machine)));
  Say(fmt::format("machine {}: metrics at {} (node), {} (sidecar)", machine.index,
                  MetricsOfNode(machine), StatusOfSidecar(machine).metrics));
  return OkStatus();
}

void LocalCluster::TickChildren() {
  supervisor_.Tick(clock_.Now());
  if (!supervisor_.failure().ok()) Stop();
  if (!stopping_ || supervisor_.running() > 0) return;
  child_timer_.Cancel();
  loop_.Stop();
}

void LocalCluster::SplitMemory() {
  if (auto specs = split_.Update(server_->service().Status(), clock_.Now()))
    server_->service().SetDatasets(*std::move(specs), {});
}

void LocalCluster::Stop() {
  if (std::exchange(stopping_, true)) return;
  screen_timer_.Cancel();
  Say("stopping");
  if (on_stop_) on_stop_();
  supervisor_.Stop(clock_.Now());
}

void LocalCluster::Show() {
  const coordination::ClusterStatus status = server_->service().Status();
  if (screen_.is_terminal()) {
    screen_.Draw(FormatStatus(status));
  } else {
    screen_.Say(FormatStatusLine(status));
  }
}

Status LocalCluster::Run() {
  const net::StopSignals signals(loop_, [this] { Stop(); });
  child_timer_ = net::PeriodicTimer(loop_, kChildTick, [this] { TickChildren(); });
  TickChildren();
  split_timer_ = net::PeriodicTimer(loop_, kSplitEvery, [this] { SplitMemory(); });
  SplitMemory();
  if (shows_) {
    screen_timer_ = net::PeriodicTimer(loop_, screen_.is_terminal() ? kScreenEvery : kLineEvery,
                                       [this] { Show(); });
    Show();
  }
  loop_.Run();
  return supervisor_.failure();
}

void AddLocalOptions(CLI::App& command, LocalOptions& options) {
  command
      .add_option("--file,-f", options.files, "YAML of Datasets and CachePlans; may be repeated")
      ->required()
      ->allow_extra_args(false)
      ->check(CLI::ExistingFile);
  command
      .add_option("--memory", options.memory,
                  "Bytes of samples that each machine offers; by default, all machines together "
                  "offer what the datasets ask for")
      ->check(MustBeQuantity);
  CLI::Option* const disk = command.add_option(
      "--disk", options.disk,
      "Folder for samples that memory has no room for, of datasets with the tier Disk");
  CLI::Option* const disk_capacity =
      command
          .add_option("--disk-capacity", options.disk_capacity,
                      "Most bytes of files that each machine keeps in that folder")
          ->check(MustBeQuantity);
  disk->needs(disk_capacity);
  disk_capacity->needs(disk);
  command.add_option("--arena", options.arena, "Bytes of shared memory of each sidecar")
      ->check(MustBeQuantity)
      ->capture_default_str();
  command
      .add_option("--overflow", options.overflow,
                  "Bytes beside the arena, for samples that the arena has no room for; by default "
                  "256Mi, or twice the largest sample if that is more")
      ->check(MustBeQuantity);
  command
      .add_option("--computed", options.computed,
                  "Bytes of shared memory of each sidecar for computed samples; 0 keeps none")
      ->check(MustBeQuantity)
      ->capture_default_str();
  command
      .add_option("--state", options.state_dir,
                  "Folder for manifests, logs, and sockets that only you can reach")
      ->capture_default_str();
  command
      .add_option(
          "--socket-dir", options.socket_dir,
          "Folder for the sockets of training processes; by default a folder in the state folder")
      ->check(CLI::ExistingDirectory);
  command
      .add_option("--allow-uid", options.users,
                  "User ID whose processes may read samples, beside yours and root's; may be "
                  "repeated. Set --socket-dir to a folder that this user can reach")
      ->allow_extra_args(false)
      ->type_name("UID");
  command
      .add_option("--ca-file", options.ca_file,
                  "Certificates to trust instead of the system's, for https")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  command
      .add_option("--keys", options.keys,
                  "Folder with the keys of the web server or bucket of the dataset NAME, one file "
                  "for each key; may be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=FOLDER");
  command
      .add_option("--port", options.port, "Port of the coordinator's /metrics; 0 for any free port")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command.add_flag("--reindex", options.reindex, "Index the sources again");
}

}  // namespace optcache::cli
