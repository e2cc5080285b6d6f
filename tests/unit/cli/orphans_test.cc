#include "cli/up/orphans.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "base/files.h"
#include "cli/up/supervisor.h"

namespace optcache::cli {
namespace {

constexpr Duration kGrace = std::chrono::minutes(2);  // more than anybody needs

class OrphansTest : public testing::Test {
 protected:
  OrphansTest()
      : folder_(testing::TempDir() + "leftovers_" +
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  // Starts scripts as children of a process that then dies without a word.
  void Leave(const std::vector<std::string>& scripts) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      auto* const supervisor = new Supervisor({}, [](const std::string&) {});
      for (std::size_t i = 0; i < scripts.size(); ++i) {
        (void)supervisor->Start({.name = std::to_string(i),
                                 .command = {"/bin/sh", "-c", "echo begun; " + scripts[i]},
                                 .log_file = LogOf(i)},
                                SystemClock().Now());
      }
      ::_exit(0);  // and nobody deletes the supervisor
    }
    ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
    const Deadline deadline = Deadline::After(SystemClock(), std::chrono::minutes(2));
    for (std::size_t i = 0; i < scripts.size(); ++i) {
      while (ReadFile(LogOf(i), 1_KiB).value_or("") != "begun\n") {
        ASSERT_FALSE(deadline.Expired(SystemClock().Now()));
        std::this_thread::yield();
      }
    }
  }
  std::string LogOf(std::size_t i) const { return folder_ + "/" + std::to_string(i) + ".log"; }

  std::string folder_;
};

TEST_F(OrphansTest, ChildrenOutliveTheirParentAndAreEnded) {
  Leave({"exec sleep 1000", "exec sleep 1000"});
  EXPECT_EQ(StopOrphans(folder_, kGrace).value(), 2U);
  EXPECT_EQ(StopOrphans(folder_, kGrace).value(), 0U);
}

TEST_F(OrphansTest, KillsWhatDoesNotStop) {
  Leave({"trap '' TERM; while :; do sleep 0.01; done"});
  EXPECT_EQ(StopOrphans(folder_, std::chrono::milliseconds(10)).value(), 1U);
  EXPECT_EQ(StopOrphans(folder_, kGrace).value(), 0U);
}

TEST_F(OrphansTest, ALogThatNobodyWritesIsLeftAlone) {
  ASSERT_TRUE(WriteFileAtomically(LogOf(0), "begun\n").ok());
  EXPECT_EQ(StopOrphans(folder_, kGrace).value(), 0U);
}

TEST_F(OrphansTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_EQ(StopOrphans(folder_ + "/none", kGrace).error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace optcache::cli
