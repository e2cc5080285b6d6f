#include "cli/up/machines.h"

#include <set>

#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

const Machine kMachine{.index = 1,
                       .socket = "/run/machine-1.sock",
                       .node_socket = "/state/run/node-1.sock",
                       .node_http_port = 4201,
                       .sidecar_http_port = 4301,
                       .s3_port = 4401};
const MachineOptions kOptions{.program_dir = "/opt/bin",
                              .coordinator = "unix:/state/run/coordinator.sock",
                              .log_dir = "/state/logs",
                              .memory = 1000,
                              .arena = 200,
                              .overflow = 300};

std::string Joined(const ChildSpec& spec) {
  std::string text;
  for (const std::string& argument : spec.command)
    text += (text.empty() ? "" : " ") + argument;
  return text;
}

TEST(Machines, AskForNoMoreMemoryThanThereIs) {
  const MemoryRoom total{.bytes = 3_GiB, .limited_by = "the machine"};
  const MachineOptions each{.memory = 1_GiB, .arena = 256_MiB, .overflow = 128_MiB};
  EXPECT_TRUE(CheckMemory(2, each, total).ok());
  const Status refused = CheckMemory(3, each, total);
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_EQ(refused.message(),
            "3 machines with 1.00 GiB for samples and 384 MiB for the sidecar each: more than the "
            "3.00 GiB of the machine; lower --memory, --arena or the capacity of the datasets");
  EXPECT_FALSE(CheckMemory(2, {.memory = ~ByteCount{0}}, total).ok());
}

TEST(Machines, ANodesCommandLine) {
  const ChildSpec spec = NodeOf(kMachine, kOptions);
  EXPECT_EQ(
      Joined(spec),
      "/opt/bin/optcache-node --name node-1 --listen unix:/state/run/node-1.sock --metrics-address "
      "127.0.0.1:4201 --coordinator unix:/state/run/coordinator.sock --memory 1000");
  EXPECT_EQ(spec.log_file, "/state/logs/node-1.log");
}

TEST(Machines, ASidecarsCommandLine) {
  std::vector<ReadyDataset> datasets(2);
  datasets[0].spec.name = "vision/a";
  datasets[0].manifest_file = "/state/a.manifest";
  datasets[0].store = "/data/a";
  datasets[1].spec.name = "vision/b";
  datasets[1].manifest_file = "/state/b.manifest";
  datasets[1].store = "http://h/b?x=1";
  datasets[1].keys_folder = "/keys";
  datasets[1].patience = std::chrono::minutes(30);
  datasets[1].price = {.per_request = 0.0000004, .per_gib = 0.09};
  EXPECT_EQ(Joined(SidecarOf(kMachine, kOptions, datasets)),
            "/opt/bin/optcache-sidecar --name sidecar-1 --socket /run/machine-1.sock --node "
            "unix:/state/run/node-1.sock --metrics-address 127.0.0.1:4301 --arena 200 --overflow "
            "300 --dataset "
            "vision/a=/state/a.manifest=/data/a --dataset "
            "vision/b=/state/b.manifest=http://h/b?x=1 --keys vision/b=/keys --patience "
            "vision/b=1800s --price-per-request vision/b=0.0000004 --price-per-gib vision/b=0.09");
}

TEST(Machines, ASidecarTrustsTheCertificatesThatAreGiven) {
  MachineOptions options = kOptions;
  options.ca_file = "/etc/ca.pem";
  EXPECT_EQ(Joined(SidecarOf(kMachine, options, {})),
            Joined(SidecarOf(kMachine, kOptions, {})) + " --ca-file /etc/ca.pem");
}

TEST(Machines, ASidecarServesByS3InItsOrder) {
  MachineOptions options = kOptions;
  options.s3 = true;
  options.samplers = {"a=sequential", "b=torch-distributed,world=2"};
  EXPECT_EQ(Joined(SidecarOf(kMachine, options, {})),
            Joined(SidecarOf(kMachine, kOptions, {})) +
                " --s3 127.0.0.1:4401 --pod-index 1 --sampler a=sequential --sampler "
                "b=torch-distributed,world=2");
  EXPECT_EQ(S3Of(kMachine), "http://127.0.0.1:4401");
}

TEST(Machines, ASidecarsPlaceInTheStatus) {
  EXPECT_EQ(StatusOfSidecar(kMachine),
            (coordination::SidecarStatus{.name = "sidecar-1",
                                         .socket = "/run/machine-1.sock",
                                         .metrics = "http://127.0.0.1:4301/metrics"}));
}

TEST(Machines, WhereANodesMetricsAre) {
  EXPECT_EQ(MetricsOfNode(kMachine), "http://127.0.0.1:4201/metrics");
}

TEST(Machines, AShellTakesWhatIsExported) {
  EXPECT_EQ(ExportOf("OPTCACHE_SOCKET", "/run/a_b/machine-1.sock"),
            "export OPTCACHE_SOCKET=/run/a_b/machine-1.sock");
  EXPECT_EQ(ExportOf("A", "/my data/$x"), "export A='/my data/$x'");
  EXPECT_EQ(ExportOf("A", "it's"), R"(export A='it'\''s')");
}

TEST(Machines, HaveSocketsAndPortsOfTheirOwn) {
  const auto machines = MakeMachines(8, {.clients = "/sockets", .own_user = "/state/run"});
  ASSERT_TRUE(machines);
  std::set<std::uint16_t> ports;
  for (const Machine& machine : *machines)
    ports.insert({machine.node_http_port, machine.sidecar_http_port, machine.s3_port});
  EXPECT_EQ(ports.size(), 24U);
  EXPECT_FALSE(ports.contains(0));
  EXPECT_EQ(machines->at(7).socket, "/sockets/machine-7.sock");
  EXPECT_EQ(machines->at(7).node_socket, "/state/run/node-7.sock");
}

TEST(Machines, RefuseASocketPathThatIsTooLong) {
  const std::string long_path = "/" + std::string(100, 'x');
  const auto clients = MakeMachines(1, {.clients = long_path, .own_user = "/run"});
  ASSERT_FALSE(clients);
  EXPECT_TRUE(clients.error().message().ends_with("choose a shorter --socket-dir"));
  const auto own_user = MakeMachines(1, {.clients = "/run", .own_user = long_path});
  ASSERT_FALSE(own_user);
  EXPECT_TRUE(own_user.error().message().ends_with("choose a shorter --state"));
}

}  // namespace
}  // namespace optcache::cli
