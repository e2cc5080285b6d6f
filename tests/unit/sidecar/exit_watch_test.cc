#include "sidecar/programs/exit_watch.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "support/manual_clock.h"
#include "support/temp_dir.h"
#include "unit/sidecar/scripted_node.h"

namespace optcache::sidecar {
namespace {

using std::chrono::seconds;

class ExitRuleTest : public testing::Test {
 protected:
  bool IsOver(const PodSight& sight) { return rule_.IsOver(sight, clock_.Now()); }
  ManualClock clock_;
  ExitRule rule_{seconds(60), false};
};

TEST_F(ExitRuleTest, TheFileEndsItAtOnce) {
  EXPECT_TRUE(IsOver({.exit_file = true, .clients = 3}));
}

// An image may take an hour.
TEST_F(ExitRuleTest, WaitsForTheFirstContainerHoweverLong) {
  EXPECT_FALSE(IsOver({.others_alive = false}));
  clock_.Advance(seconds(3600));
  EXPECT_FALSE(IsOver({.others_alive = false}));
  EXPECT_FALSE(IsOver({}));
}

TEST_F(ExitRuleTest, AContainerThatNeverWasAClientEndsIt) {
  EXPECT_FALSE(IsOver({.others_alive = true}));
  EXPECT_FALSE(IsOver({.others_alive = false}));
  clock_.Advance(seconds(60));
  EXPECT_TRUE(IsOver({.others_alive = false}));
}

TEST_F(ExitRuleTest, AContainerThatWorksWithoutUsIsNoEnd) {
  EXPECT_FALSE(IsOver({.clients = 1, .others_alive = true}));
  clock_.Advance(seconds(3600));
  EXPECT_FALSE(IsOver({.others_alive = true}));
}

TEST_F(ExitRuleTest, AContainerThatIsRestartedIsNoEnd) {
  EXPECT_FALSE(IsOver({.others_alive = true}));
  EXPECT_FALSE(IsOver({.others_alive = false}));
  clock_.Advance(seconds(59));
  EXPECT_FALSE(IsOver({.others_alive = true}));
  clock_.Advance(seconds(59));
  EXPECT_FALSE(IsOver({.others_alive = false}));
}

TEST_F(ExitRuleTest, EndsAtOnceWhereNothingComesAfter) {
  rule_ = ExitRule(seconds(0), false);
  EXPECT_FALSE(IsOver({.others_alive = false}));
  EXPECT_FALSE(IsOver({.others_alive = true}));
  EXPECT_TRUE(IsOver({.others_alive = false}));
}

TEST_F(ExitRuleTest, ARestartedSidecarKnowsThatItHasBegun) {
  rule_ = ExitRule(seconds(0), true);
  EXPECT_TRUE(IsOver({.others_alive = false}));
}

TEST_F(ExitRuleTest, WhereProcessesCannotBeSeenALongTimeWithoutClientsIsTheEnd) {
  EXPECT_FALSE(IsOver({.clients = 1}));
  EXPECT_FALSE(IsOver({}));
  clock_.Advance(seconds(59));
  EXPECT_FALSE(IsOver({}));
  EXPECT_FALSE(IsOver({.clients = 1}));
  clock_.Advance(seconds(59));
  EXPECT_FALSE(IsOver({}));
  clock_.Advance(seconds(60));
  EXPECT_TRUE(IsOver({}));
}

class OthersAliveTest : public testing::Test {
 protected:
  void Process(int id, int parent, const std::string& command = "(python3)") const {
    dir_.Write(std::to_string(id) + "/stat",
               std::to_string(id) + " " + command + " S " + std::to_string(parent) + " 1 1 0\n");
  }
  std::optional<bool> Look() const { return OthersAlive(dir_.path(), 20); }
  TempDir dir_;
};

TEST_F(OthersAliveTest, ThePauseThisOneAndItsChildrenAreNoOthers) {
  Process(1, 0, "(pause)");
  Process(20, 0, "(optcache-sidec)");
  Process(21, 20, "(optcache-sidec)");
  dir_.Write("meminfo", "not a process");
  EXPECT_EQ(Look(), false);
}

TEST_F(OthersAliveTest, ATrainingProcessIs) {
  Process(1, 0, "(pause)");
  Process(33, 1);
  EXPECT_EQ(Look(), true);
}

// As runtimes start it: by a process of the machine, which has no number in the pod.
TEST_F(OthersAliveTest, TheFirstProcessOfAnotherContainerIs) {
  Process(1, 0, "(pause)");
  Process(20, 0, "(optcache-sidec)");
  Process(33, 0);
  EXPECT_EQ(Look(), true);
}

TEST_F(OthersAliveTest, OneThatGoesWhileWeLookIsNot) {
  dir_.Write("33/status", "its stat is gone");
  EXPECT_EQ(Look(), false);
}

TEST_F(OthersAliveTest, ACommandMayLookLikeAnything) {
  Process(33, 20, "(a) S 1 (b)");
  EXPECT_EQ(Look(), false);
  Process(34, 1, "(a) S 20 (b)");
  EXPECT_EQ(Look(), true);
}

// A hook or a probe of the sidecar's container starts as a container's first process does.
TEST_F(OthersAliveTest, AnotherOfThisProgramIsNot) {
  Process(33, 0, "(optcache-sidec)");
  dir_.Write("33/cmdline", std::string("/usr/bin/optcache-sidecar\0--await-watch\0", 41));
  EXPECT_EQ(Look(), false);
  dir_.Write("33/cmdline", std::string("false\0optcache-sidecar\0", 23));
  EXPECT_EQ(Look(), true);
}

TEST_F(OthersAliveTest, TheFirstProcessOfItsOwnNamespaceSeesNobody) {
  EXPECT_EQ(OthersAlive(dir_.path(), 1), std::nullopt);
  EXPECT_EQ(OthersAlive(dir_.Join("nothing"), 20), std::nullopt);
}

class ExitWatchTest : public LoopTest {};

TEST_F(ExitWatchTest, EndsOnceWhenTheFileAppears) {
  TempDir dir;
  int ended = 0;
  const ExitWatch watch(
      loop_, SystemClock(), {.file = dir.Join("exit"), .proc = dir.path()}, [] { return 1; },
      [&] { ++ended; });
  dir.Write("exit", "");
  RunUntil([&] { return ended > 0; });
  RunFor(seconds(2));
  EXPECT_EQ(ended, 1);
}

TEST_F(ExitWatchTest, EndsAfterAContainerThatFailedAtOnceAndRemembersIt) {
  TempDir dir;
  TempDir proc;
  int ended = 0;
  const ExitWatch::Options options{.file = dir.Join("exit"),
                                   .shared_processes = true,
                                   .proc = proc.path(),
                                   .linger = seconds(0)};
  const auto start = [&] {
    return ExitWatch(loop_, SystemClock(), options, [] { return 0; }, [&] { ++ended; });
  };
  {
    const ExitWatch watch = start();
    RunUntil([&] { return std::filesystem::exists(dir.Join("exit.watched")); });
    proc.Write("33/stat", "33 (python3) S 0 1 1 0\n");
    RunUntil([&] { return std::filesystem::exists(dir.Join("exit.begun")); });
    std::filesystem::remove_all(proc.Join("33"));
    RunUntil([&] { return ended == 1; });
  }
  const ExitWatch restarted = start();
  RunUntil([&] { return ended == 2; });
}

// What starts in the meantime is no container: those are held.
TEST_F(ExitWatchTest, SaysThatItWatchesBeforeItLooksAtProcesses) {
  TempDir dir;
  TempDir proc;
  proc.Write("33/stat", "33 (runc) S 0 1 1 0\n");
  int ended = 0;
  const ExitWatch watch(
      loop_, SystemClock(),
      {.file = dir.Join("exit"), .shared_processes = true, .proc = proc.path(), .linger = {}},
      [] { return 0; }, [&] { ++ended; });
  RunFor(std::chrono::milliseconds(100));
  std::filesystem::remove_all(proc.Join("33"));
  RunUntil([&] { return std::filesystem::exists(dir.Join("exit.watched")); });
  RunFor(std::chrono::milliseconds(200));
  EXPECT_EQ(ended, 0);
  EXPECT_FALSE(std::filesystem::exists(dir.Join("exit.begun")));
}

TEST(AwaitWatchTest, EndsWhenTheSidecarWatchesOrPatienceIsOver) {
  TempDir dir;
  AwaitWatch(dir.Join("exit"), std::chrono::milliseconds(50));
  dir.Write("exit.watched", "");
  const MonotonicTime start = SystemClock().Now();
  AwaitWatch(dir.Join("exit"), std::chrono::hours(1));
  EXPECT_LT(SystemClock().Now() - start, std::chrono::minutes(1));
}

TEST_F(ExitWatchTest, LooksAtNoProcessesThatAreNotThePods) {
  TempDir dir;
  TempDir proc;
  proc.Write("33/stat", "33 (systemd) S 0 1 1 0\n");
  bool connected = true;
  int ended = 0;
  const ExitWatch watch(
      loop_, SystemClock(), {.file = dir.Join("exit"), .proc = proc.path(), .linger = seconds(0)},
      [&] { return connected ? 1 : 0; }, [&] { ++ended; });
  RunFor(std::chrono::milliseconds(200));
  EXPECT_EQ(ended, 0);
  connected = false;
  RunUntil([&] { return ended == 1; });
}

}  // namespace
}  // namespace optcache::sidecar
