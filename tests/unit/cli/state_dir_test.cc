#include "cli/state_dir.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

std::string FreshFolder() {
  const std::string folder =
      testing::TempDir() + "state_" + testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::remove_all(folder);
  return folder;
}

TEST(StateDir, IsMadeAndUsedByOneAtATime) {
  const std::string folder = FreshFolder();
  {
    const Result<StateDir> first = StateDir::Open(folder);
    ASSERT_TRUE(first) << first.error().ToString();
    const Result<StateDir> second = StateDir::Open(folder);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), Code::kConflict);
  }
  EXPECT_TRUE(StateDir::Open(folder));
}

TEST(StateDir, TellsWhereTheCoordinatorIs) {
  const std::string folder = FreshFolder();
  const Result<StateDir> state = StateDir::Open(folder);
  ASSERT_TRUE(state);
  EXPECT_EQ(FindCoordinator("", folder).error().code(), Code::kNotFound);
  ASSERT_TRUE(state->WriteCoordinator("http://127.0.0.1:1").ok());
  EXPECT_EQ(FindCoordinator("", folder), "http://127.0.0.1:1");
  EXPECT_EQ(FindCoordinator("http://other", folder), "http://other");
  state->RemoveCoordinator();
  EXPECT_FALSE(FindCoordinator("", folder));
}

TEST(StateDir, MakesFoldersBelowIt) {
  const Result<StateDir> state = StateDir::Open(FreshFolder());
  ASSERT_TRUE(state);
  const Result<std::string> logs = state->Subfolder("logs");
  ASSERT_TRUE(logs);
  EXPECT_TRUE(std::filesystem::is_directory(*logs));
}

}  // namespace
}  // namespace optcache::cli
