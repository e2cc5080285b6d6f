#include "cli/up/supervisor.h"

#include <signal.h>

#include <filesystem>
#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "support/manual_clock.h"

namespace optcache::cli {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

// Children are shell scripts; their deaths are real, the time between is the test's.
class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() : folder_(testing::TempDir() + "supervisor_" + TestName()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  static std::string TestName() {
    return testing::UnitTest::GetInstance()->current_test_info()->name();
  }

  ChildSpec Script(const std::string& name, const std::string& text) {
    return {.name = name,
            .command = {"/bin/sh", "-c", text},
            .log_file = folder_ + "/" + name + ".log"};
  }
  // Ticks, without the test's time going on, until `done`; gives up after two minutes.
  void TickUntil(Supervisor& supervisor, const std::function<bool()>& done) {
    const Deadline deadline = Deadline::After(SystemClock(), std::chrono::minutes(2));
    while (!done() && !deadline.Expired(SystemClock().Now())) {
      supervisor.Tick(clock_.Now());
      std::this_thread::yield();
    }
    EXPECT_TRUE(done());
  }
  std::string LogOf(const std::string& name) {
    return ReadFile(folder_ + "/" + name + ".log", 1_MiB).value_or("");
  }

  std::string folder_;
  ManualClock clock_;
  std::vector<std::string> said_;
  Supervisor supervisor_{{}, [this](const std::string& line) { said_.push_back(line); }};
};

TEST_F(SupervisorTest, KeepsWhatAChildPrints) {
  ASSERT_TRUE(
      supervisor_.Start(Script("a", "echo out; echo err >&2; exec sleep 1000"), clock_.Now()).ok());
  TickUntil(supervisor_, [&] { return LogOf("a") == "out\nerr\n"; });
  EXPECT_EQ(supervisor_.running(), 1U);
}

TEST_F(SupervisorTest, StartsAChildAgainThatDiedAndSaysSo) {
  ASSERT_TRUE(supervisor_.Start(Script("a", "echo run; exit 3"), clock_.Now()).ok());
  TickUntil(supervisor_, [&] { return supervisor_.running() == 0; });
  EXPECT_THAT(said_, ElementsAre(StartsWith("a died (exit status 3), starts again in 0.")));
  supervisor_.Tick(clock_.Now());
  EXPECT_EQ(supervisor_.running(), 0U) << "not before the wait is over";
  clock_.Advance(std::chrono::seconds(1));
  supervisor_.Tick(clock_.Now());
  EXPECT_EQ(said_.back(), "a started again");
  EXPECT_EQ(supervisor_.restarts(), 1U);
  TickUntil(supervisor_, [&] { return LogOf("a") == "run\nrun\n"; });
}

TEST_F(SupervisorTest, WaitsLongerEachTimeUpToALimit) {
  ASSERT_TRUE(supervisor_.Start(Script("a", "exit 1"), clock_.Now()).ok());
  for (int i = 0; i < 8; ++i) {
    TickUntil(supervisor_, [&] { return supervisor_.running() == 0; });
    clock_.Advance(std::chrono::seconds(10));
    supervisor_.Tick(clock_.Now());
  }
  TickUntil(supervisor_, [&] { return supervisor_.running() == 0; });
  clock_.Advance(std::chrono::seconds(4));
  supervisor_.Tick(clock_.Now());
  EXPECT_EQ(supervisor_.running(), 0U);
}

TEST_F(SupervisorTest, SaysWhatAChildSaidThatDoesNotStart) {
  const ChildSpec child = Script("a", "echo working; echo 'sh: there is no room'; exit 1");
  ASSERT_TRUE(supervisor_.Start(child, clock_.Now()).ok());
  for (int starts = 1; starts <= 3; ++starts) {
    EXPECT_EQ(supervisor_.failure(), OkStatus());
    TickUntil(supervisor_, [&] { return supervisor_.running() == 0; });
    clock_.Advance(std::chrono::seconds(1));
    if (starts < 3) supervisor_.Tick(clock_.Now());
  }
  EXPECT_EQ(supervisor_.failure(),
            Status(Code::kUnavailable, "a does not start: there is no room"));
}

TEST_F(SupervisorTest, SaysThatAProgramHasGone) {
  const std::string program = folder_ + "/program";
  std::filesystem::copy_file("/bin/false", program);
  const ChildSpec child = {.name = "a", .command = {program}, .log_file = folder_ + "/a.log"};
  ASSERT_TRUE(supervisor_.Start(child, clock_.Now()).ok());
  std::filesystem::remove(program);
  TickUntil(supervisor_, [&] { return supervisor_.running() == 0; });
  for (int starts = 2; starts <= 3; ++starts) {
    EXPECT_EQ(supervisor_.failure(), OkStatus());
    clock_.Advance(std::chrono::seconds(10));  // the longest pause
    supervisor_.Tick(clock_.Now());
  }
  EXPECT_EQ(supervisor_.failure().code(), Code::kUnavailable);
  EXPECT_THAT(supervisor_.failure().message(), StartsWith("a does not start: "));
  EXPECT_THAT(supervisor_.failure().message(), testing::HasSubstr(program));
}

// As after SIGKILL and SIGTERM, before any of them was healthy.
TEST_F(SupervisorTest, AChildThatIsEndedFromOutsideIsStartedForEver) {
  ASSERT_TRUE(supervisor_.Start(Script("killed", "kill -9 $$"), clock_.Now()).ok());
  ASSERT_TRUE(supervisor_.Start(Script("asked", "exit 0"), clock_.Now()).ok());
  for (int starts = 1; starts <= 5; ++starts) {
    TickUntil(supervisor_, [&] { return supervisor_.running() == 0; });
    clock_.Advance(std::chrono::seconds(10));  // the longest pause
    supervisor_.Tick(clock_.Now());
  }
  EXPECT_EQ(supervisor_.restarts(), 10U);
  EXPECT_EQ(supervisor_.failure(), OkStatus());
}

TEST_F(SupervisorTest, AChildThatWasHealthyIsStartedForEver) {
  ASSERT_TRUE(supervisor_.Start(Script("healthy", "exit 1"), clock_.Now()).ok());
  for (int starts = 1; starts <= 5; ++starts) {
    clock_.Advance(std::chrono::seconds(40));
    TickUntil(supervisor_, [&] { return supervisor_.running() == 0; });
    clock_.Advance(std::chrono::seconds(40));
    supervisor_.Tick(clock_.Now());
  }
  EXPECT_EQ(supervisor_.failure(), OkStatus());
}

TEST_F(SupervisorTest, NamesTheSignalThatKilledAChild) {
  ASSERT_TRUE(supervisor_.Start(Script("a", "sleep 1000"), clock_.Now()).ok());
  ASSERT_EQ(::kill(supervisor_.PidOf("a"), SIGKILL), 0);
  TickUntil(supervisor_, [&] { return supervisor_.running() == 0; });
  EXPECT_THAT(said_, ElementsAre(StartsWith("a died (signal 9)")));
}

TEST_F(SupervisorTest, StopsAllByTermAndStartsNobodyAgain) {
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(supervisor_.Start(Script(name, "exec sleep 1000"), clock_.Now()).ok());
  }
  supervisor_.Stop(clock_.Now());
  TickUntil(supervisor_, [&] { return supervisor_.running() == 0; });
  clock_.Advance(std::chrono::minutes(1));
  supervisor_.Tick(clock_.Now());
  EXPECT_EQ(supervisor_.running(), 0U);
  EXPECT_THAT(said_, ElementsAre());
}

TEST_F(SupervisorTest, KillsWhatDoesNotStop) {
  const ChildSpec deaf = Script("a", "trap '' TERM; echo deaf; while :; do sleep 1; done");
  ASSERT_TRUE(supervisor_.Start(deaf, clock_.Now()).ok());
  TickUntil(supervisor_, [&] { return LogOf("a") == "deaf\n"; });
  supervisor_.Stop(clock_.Now());
  clock_.Advance(std::chrono::milliseconds(4900));
  supervisor_.Tick(clock_.Now());
  EXPECT_EQ(supervisor_.running(), 1U);
  clock_.Advance(std::chrono::milliseconds(200));
  TickUntil(supervisor_, [&] { return supervisor_.running() == 0; });
  EXPECT_THAT(said_, ElementsAre("a did not stop within 5 s and is killed"));
}

TEST_F(SupervisorTest, LeavesNothingBehind) {
  pid_t pid = 0;
  {
    Supervisor supervisor({}, [](const std::string&) {});
    ASSERT_TRUE(supervisor.Start(Script("a", "exec sleep 1000"), clock_.Now()).ok());
    pid = supervisor.PidOf("a");
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST_F(SupervisorTest, RefusesAProgramThatIsNotThere) {
  EXPECT_EQ(supervisor_.Start({.name = "a", .command = {folder_ + "/none"}}, clock_.Now()).code(),
            Code::kNotFound);
}

}  // namespace
}  // namespace optcache::cli
