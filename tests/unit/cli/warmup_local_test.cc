#include "cli/warmup/warmup_local.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/files.h"
#include "cli/warmup/warm_process.h"
#include "support/temp_dir.h"

namespace optcache::cli {
namespace {

coordination::ClusterStatus TwoNodes() {
  coordination::ClusterStatus status;
  status.members = {{.id = 1, .address = "127.0.0.1:41"}, {.id = 2, .address = "127.0.0.1:42"}};
  status.datasets = {{.name = "default/images", .capacity = 5000}};
  return status;
}

const LocalSource kImages{.name = "default/images",
                          .manifest_file = "/m",
                          .store = "/data",
                          .order = "sequential size=5",
                          .keys_folder = "/keys"};

// The word after `flag`.
std::string After(const std::vector<std::string>& command, const std::string& flag) {
  const auto found = std::ranges::find(command, flag);
  return found == command.end() ? "" : *std::next(found);
}

// The words after each --part.
std::vector<std::string> PartsIn(const std::vector<std::string>& command) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i + 1 < command.size(); ++i) {
    if (command[i] == "--part") parts.push_back(command[i + 1]);
  }
  return parts;
}

TEST(WarmupLocal, AnAmbiguousNameIsRefused) {
  const TempDir dir;
  LocalSources sources{.datasets = {kImages, kImages}};
  sources.datasets[1].name = "speech/images";
  ASSERT_TRUE(WriteLocalSources(dir.path(), sources).ok());
  EXPECT_EQ(WarmHere({.dataset = "images", .state_dir = dir.path(), .coordinator = "unix:/none"}),
            Status(Code::kInvalidArgument,
                   "several datasets have the name images: default/images, speech/images. Write "
                   "one with its namespace, for example default/images"));
}

TEST(WarmupLocal, WhatTheDatasetAllowsHoldsForEachProcess) {
  LocalSource spared = kImages;
  spared.limits = {.requests_per_second = 9, .bytes_per_second = 400};
  spared.patience = std::chrono::seconds(90);
  for (const auto& [bandwidth, rate] :
       {std::pair<ByteCount, const char*>{0, "400"}, {1001, "400"}, {600, "300"}}) {
    const auto commands =
        WarmCommands("/bin/sidecar", spared, "", TwoNodes(), bandwidth, "/logs/w");
    for (const std::vector<std::string>& command : commands.value()) {
      EXPECT_EQ(After(command, "--bytes-per-second"), std::string("default/images=") + rate);
      EXPECT_EQ(After(command, "--requests-per-second"), "default/images=9");
      EXPECT_EQ(After(command, "--keys"), "default/images=/keys");
      EXPECT_EQ(After(command, "--patience"), "default/images=90s");
    }
  }
}

TEST(WarmupLocal, EachNodeGetsItsSliceAndItsPartOfTheBandwidth) {
  const auto commands = WarmCommands("/bin/sidecar", kImages, "", TwoNodes(), 1001, "/logs/w");
  ASSERT_EQ(commands.value().size(), 2U);
  const std::vector<std::string>& second = (*commands)[1];
  EXPECT_EQ(second[0], "/bin/sidecar");
  EXPECT_EQ(After(second, "--node"), "127.0.0.1:42");
  EXPECT_EQ(After(second, "--dataset"), "default/images=/m=/data");
  EXPECT_EQ(After(second, "--at"), "1");
  EXPECT_EQ(PartsIn(second), (std::vector<std::string>{"0=2500", "1=2500"}));
  EXPECT_EQ(After(second, "--order"), "sequential size=5");
  EXPECT_EQ(After(second, "--bytes-per-second"), "default/images=500");
  EXPECT_EQ(After(second, "--termination-file"), "/logs/w-1.end");
  const auto unlimited = WarmCommands("/bin/sidecar", kImages, "", TwoNodes(), 0, "/logs/w");
  EXPECT_EQ(std::ranges::count((*unlimited)[0], "--bytes-per-second"), 0);
}

TEST(WarmupLocal, ALargerNodeGetsMore) {
  coordination::ClusterStatus status = TwoNodes();
  status.members[0].capacity = 3000;
  status.members[1].capacity = 1000;
  const auto commands = WarmCommands("/bin/sidecar", kImages, "", status, 0, "/logs/w");
  EXPECT_EQ(PartsIn((*commands)[0]), (std::vector<std::string>{"0=3750", "1=1250"}));
}

TEST(WarmupLocal, WithoutNodesOrRoomThereIsNothingToDo) {
  coordination::ClusterStatus status = TwoNodes();
  status.datasets[0].capacity = 0;
  EXPECT_EQ(WarmCommands("s", kImages, "", status, 0, "").error().code(), Code::kResourceExhausted);
  status.datasets.clear();
  EXPECT_EQ(WarmCommands("s", kImages, "", status, 0, "").error().code(), Code::kNotFound);
  status = TwoNodes();
  status.members.clear();
  EXPECT_EQ(WarmCommands("s", kImages, "", status, 0, "").error().code(), Code::kNotFound);
}

// Returns when it has ended.
void WaitFor(WarmProcess& process) {
  while (process.Look()) {
  }
}

TEST(WarmProcess, TellsItsLastLineAndHowItEnded) {
  const TempDir dir;
  const std::string log = dir.Join("log");
  WarmProcess good;
  ASSERT_TRUE(
      good.Start({"/bin/sh", "-c", "echo one; echo two; echo why >&2; printf rest"}, log).ok());
  WaitFor(good);
  EXPECT_TRUE(good.succeeded());
  EXPECT_EQ(good.last_line(), "two");
  EXPECT_EQ(ReadFile(log, 100).value(), "why\n");
  WarmProcess bad;
  ASSERT_TRUE(bad.Start({"/bin/sh", "-c", "exit 3"}, log).ok());
  WaitFor(bad);
  EXPECT_FALSE(bad.succeeded());
  WarmProcess stopped;
  ASSERT_TRUE(stopped.Start({"/bin/sleep", "600"}, log).ok());
  stopped.Stop();
  WaitFor(stopped);
  EXPECT_FALSE(stopped.succeeded());
  WarmProcess none;
  EXPECT_EQ(none.Start({dir.Join("missing")}, log).code(), Code::kNotFound);
}

}  // namespace
}  // namespace optcache::cli
