#include "sidecar/exit_watch.h"

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
  ExitRule rule_{seconds(60)};
};

TEST_F(ExitRuleTest, TheFileEndsItAtOnce) {
  EXPECT_TRUE(IsOver({.exit_file = true, .clients = 3}));
}

TEST_F(ExitRuleTest, WaitsForTheFirstClientHoweverLong) {
  EXPECT_FALSE(IsOver({}));
  clock_.Advance(seconds(3600));
  EXPECT_FALSE(IsOver({}));
  EXPECT_FALSE(IsOver({.others_alive = false}));
}

TEST_F(ExitRuleTest, EndsWhenTheOthersProcessesHaveEnded) {
  EXPECT_FALSE(IsOver({.clients = 1, .others_alive = true}));
  clock_.Advance(seconds(3600));
  EXPECT_FALSE(IsOver({.others_alive = true}));
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

TEST_F(OthersAliveTest, ACommandMayLookLikeAnything) {
  Process(33, 20, "(a) S 1 (b)");
  EXPECT_EQ(Look(), false);
  Process(34, 1, "(a) S 20 (b)");
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

}  // namespace
}  // namespace optcache::sidecar
