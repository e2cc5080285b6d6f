#pragma once

// A whole cache on this machine, as `optcache up` and `optcache headspace` run it.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "cli/local/state_dir.h"
#include "cli/terminal/live_screen.h"
#include "cli/up/dataset_setup.h"
#include "cli/up/machines.h"
#include "cli/up/memory_split.h"
#include "cli/up/supervisor.h"
#include "control/control_server.h"
#include "net/event_loop.h"
#include "net/periodic_timer.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}  // namespace CLI

namespace optcache::cli {

inline constexpr std::uint16_t kDefaultPort = 7450;

struct LocalOptions {
  std::vector<std::string> files;
  std::uint32_t machines = 1;
  std::string memory;
  std::string disk;
  std::string disk_capacity;
  std::string arena = "256Mi";
  std::string overflow;  // empty: by the largest sample
  std::string computed = "0";
  std::string state_dir = DefaultStateDir();
  std::string socket_dir;
  std::string ca_file;
  std::vector<std::string> keys;  // NAME=FOLDER, the keys of that one's store
  std::uint16_t port = kDefaultPort;
  bool reindex = false;
  std::string headspace;              // what sidecars are to measure; empty: nothing
  bool s3 = false;                    // sidecars serve their datasets by S3, too
  std::vector<std::string> samplers;  // NAME=SAMPLER, the order in which that is read by S3
  std::vector<std::uint32_t> users;   // whose processes may read, beside root and this one's
};

// Adds them to a subcommand, but for machines and headspace.
void AddLocalOptions(CLI::App& command, LocalOptions& options);

// The folder of this program: the others lie beside it.
std::string ProgramDir();

// A line for people.
using SayLine = std::function<void(const std::string&)>;

// Reads the configuration and indexes its sources, which may take long.
Result<std::vector<ReadyDataset>> SetUpDatasets(const LocalOptions& options, const StateDir& state,
                                                const SayLine& say);

// The coordinator, and for each machine a node and a sidecar as processes of their own. Used on one
// thread, after net::BlockStopSignals.
class LocalCluster {
 public:
  // News and status go to `fd`.
  LocalCluster(const StateDir& state, std::vector<ReadyDataset> datasets, int fd);
  ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  Status Start(const LocalOptions& options);
  // Until SIGINT, SIGTERM, Stop or a child that cannot be started, and all children have stopped.
  Status Run();
  // Run returns soon.
  void Stop();
  // Is called once, when it begins to stop, for whatever reason.
  void OnStop(std::function<void()> call) { on_stop_ = std::move(call); }
  // Does not show the state of the cache.
  void ShowNothing() { shows_ = false; }

  void Say(const std::string& line) { screen_.Say(line); }
  net::EventLoop& loop() { return loop_; }
  const std::vector<Machine>& machines() const { return machines_; }

 private:
  Status StartCoordinator(std::uint16_t port);
  Status StartMachines(const LocalOptions& options);
  Status StartMachine(const Machine& machine, const MachineOptions& options);
  void TickChildren();
  void SplitMemory();
  void Show();

  const Clock& clock_;
  const StateDir& state_;
  std::vector<ReadyDataset> datasets_;
  std::vector<Machine> machines_;
  net::EventLoop loop_;
  LiveScreen screen_;
  Supervisor supervisor_;
  std::string run_dir_;  // sockets that no other user may reach
  std::unique_ptr<control::ControlServer> server_;
  MemorySplit split_;
  net::PeriodicTimer split_timer_;
  net::PeriodicTimer child_timer_;
  net::PeriodicTimer screen_timer_;
  std::function<void()> on_stop_;
  bool shows_ = true;
  bool stopping_ = false;
};

}  // namespace optcache::cli
