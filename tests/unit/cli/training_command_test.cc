#include "cli/headspace/training_command.h"

#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/temp_dir.h"

namespace optcache::cli {
namespace {

class TrainingCommandTest : public testing::Test {
 protected:
  Status Run(const std::string& script) {
    return command_.Start({"sh", "-c", script}, {{"OPTCACHE_SOCKET", dir_.Join("socket")}});
  }
  static void Until(const std::function<bool()>& done) {
    const Deadline deadline = Deadline::After(SystemClock(), std::chrono::minutes(2));
    while (!done() && !deadline.Expired(SystemClock().Now()))
      std::this_thread::yield();
    EXPECT_TRUE(done());
  }
  bool IsThere(const std::string& name) const { return std::filesystem::exists(dir_.Join(name)); }

  TempDir dir_;
  TrainingCommand command_;
};

TEST_F(TrainingCommandTest, HasItsEnvironmentAndSaysHowItEnds) {
  ASSERT_TRUE(Run("echo $OPTCACHE_SOCKET > " + dir_.Join("said") + "; exit 7").ok());
  EXPECT_TRUE(command_.running());
  Until([this] { return command_.Ended().has_value(); });
  EXPECT_EQ(command_.Ended(), "exit status 7");
  EXPECT_FALSE(command_.running());
  EXPECT_EQ(ReadFile(dir_.Join("said"), 1_KiB).value(), dir_.Join("socket") + "\n");
}

TEST_F(TrainingCommandTest, IsLookedForWithoutBeingRun) {
  EXPECT_TRUE(TrainingCommand::Find("sh").ok());
  EXPECT_TRUE(TrainingCommand::Find("/bin/sh").ok());
  EXPECT_EQ(TrainingCommand::Find("no-such-program-here").code(), Code::kNotFound);
  EXPECT_EQ(TrainingCommand::Find(dir_.Join("nowhere")).code(), Code::kNotFound);
  ASSERT_TRUE(WriteFileAtomically(dir_.Join("text"), "no program").ok());
  EXPECT_EQ(TrainingCommand::Find(dir_.Join("text")).code(), Code::kPermissionDenied);
  EXPECT_EQ(TrainingCommand::Find("/tmp").code(), Code::kPermissionDenied);
}

TEST_F(TrainingCommandTest, WhatCannotBeRunIsAnError) {
  const Status status = command_.Start({"no-such-program-here"}, {});
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(status.message().find("cannot run no-such-program-here"), std::string::npos);
  EXPECT_FALSE(command_.running());
  EXPECT_EQ(command_.Ended(), std::nullopt);
}

TEST_F(TrainingCommandTest, StopReachesAllThatItHasStarted) {
  // The outer one ends when the inner one has.
  ASSERT_TRUE(Run("trap : TERM; sh -c 'trap \"touch " + dir_.Join("inner") +
                  "; exit\" TERM; touch " + dir_.Join("ready") +
                  "; while :; do sleep 0.05; done' & wait; wait")
                  .ok());
  Until([this] { return IsThere("ready"); });
  command_.Stop(std::chrono::minutes(2));
  EXPECT_EQ(command_.Ended(), "exit status 0");
  EXPECT_TRUE(IsThere("inner"));
}

TEST_F(TrainingCommandTest, WhoDoesNotListenIsKilled) {
  ASSERT_TRUE(
      Run("trap '' TERM; touch " + dir_.Join("ready") + "; while :; do sleep 0.05; done").ok());
  Until([this] { return IsThere("ready"); });
  command_.Stop(std::chrono::milliseconds(200));
  EXPECT_EQ(command_.Ended(), "signal 9");
}

TEST_F(TrainingCommandTest, StopOfWhatHasNotBegunOrHasEndedIsNothing) {
  command_.Stop(std::chrono::seconds(1));
  ASSERT_TRUE(Run("exit 0").ok());
  Until([this] { return command_.Ended().has_value(); });
  command_.Stop(std::chrono::seconds(1));
  EXPECT_EQ(command_.Ended(), "exit status 0");
}

}  // namespace
}  // namespace optcache::cli
