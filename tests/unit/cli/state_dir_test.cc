#include "cli/local/state_dir.h"

#include <sys/stat.h>
#include <unistd.h>

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
    const Result<StateDir> first = StateDir::Open(folder, "optcache headspace");
    ASSERT_TRUE(first) << first.error().ToString();
    const Result<StateDir> second = StateDir::Open(folder, "optcache up");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code(), Code::kConflict);
    EXPECT_TRUE(second.error().message().starts_with("`optcache headspace`, process "))
        << second.error().message();
  }
  EXPECT_TRUE(StateDir::Open(folder, "optcache up"));
}

TEST(StateDir, TellsWhereTheCoordinatorIs) {
  const std::string folder = FreshFolder();
  const Result<StateDir> state = StateDir::Open(folder, "optcache up");
  ASSERT_TRUE(state);
  EXPECT_EQ(FindCoordinator("", folder).error().code(), Code::kNotFound);
  ASSERT_TRUE(state->WriteCoordinator("unix:/state/run/coordinator.sock").ok());
  EXPECT_EQ(FindCoordinator("", folder), "unix:/state/run/coordinator.sock");
  EXPECT_EQ(FindCoordinator("unix:/other", folder), "unix:/other");
  state->RemoveCoordinator();
  EXPECT_FALSE(FindCoordinator("", folder));
}

TEST(StateDir, RefusesAPathThatArgumentsCannotCarry) {
  const Result<StateDir> state = StateDir::Open(FreshFolder() + "/seed=1", "optcache up");
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(state.error().message().ends_with("choose another folder with --state"));
}

TEST(StateDir, IsForItsUserAlone) {
  const std::string folder = FreshFolder();
  const mode_t before = ::umask(0002);
  const Result<StateDir> state = StateDir::Open(folder + "/deep/below", "optcache up");
  ::umask(before);
  ASSERT_TRUE(state) << state.error().ToString();
  const Result<std::string> sockets = state->Subfolder("sockets");
  ASSERT_TRUE(sockets);
  for (const std::string& path : {state->path(), *sockets}) {
    struct stat info{};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0700U) << path;
  }
}

TEST(StateDir, IsNotWhatBelongsToAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const std::string folder = FreshFolder();
  std::filesystem::create_directories(folder);
  ASSERT_EQ(::chown(folder.c_str(), 65534, 65534), 0);
  const Result<StateDir> state = StateDir::Open(folder, "optcache up");
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code(), Code::kPermissionDenied);
  EXPECT_NE(state.error().message().find("is user 65534's"), std::string::npos);
}

TEST(StateDir, IsNotWhereOtherUsersMayWrite) {
  const std::string folder = FreshFolder();
  std::filesystem::create_directories(folder);
  for (const mode_t mode : {01777U, 0775U, 0757U}) {
    ASSERT_EQ(::chmod(folder.c_str(), mode), 0);
    const Result<StateDir> state = StateDir::Open(folder, "optcache up");
    ASSERT_FALSE(state) << mode;
    EXPECT_EQ(state.error().code(), Code::kPermissionDenied);
    EXPECT_NE(state.error().message().find("run `chmod go-w " + folder), std::string::npos);
  }
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  EXPECT_TRUE(StateDir::Open(folder, "optcache up"));
}

TEST(StateDir, KeepsAFolderPrivateThatWasThere) {
  const std::string folder = FreshFolder();
  std::filesystem::create_directories(folder + "/run");
  for (const std::string& path : {folder, folder + "/run"})
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  const Result<StateDir> state = StateDir::Open(folder, "optcache up");
  ASSERT_TRUE(state) << state.error().ToString();
  const Result<std::string> run = state->PrivateSubfolder("run");
  ASSERT_TRUE(run) << run.error().ToString();
  struct stat info{};
  ASSERT_EQ(::stat(run->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST(StateDir, SaysWhatToDoAboutAFolderThatRootLeft) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string folder = FreshFolder();
  std::filesystem::create_directories(folder + "/run");
  ASSERT_EQ(::chown(folder.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::seteuid(65534), 0);
  const Result<StateDir> state = StateDir::Open(folder, "optcache up");
  const Result<std::string> run =
      state ? state->PrivateSubfolder("run") : Result<std::string>(Error(state.error()));
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code(), Code::kPermissionDenied);
  EXPECT_EQ(run.error().message(), "cannot keep " + folder +
                                       "/run from other users; remove it, or choose another folder "
                                       "with --state: Operation not permitted");
}

TEST(StateDir, MakesFoldersBelowIt) {
  const Result<StateDir> state = StateDir::Open(FreshFolder(), "optcache up");
  ASSERT_TRUE(state);
  const Result<std::string> logs = state->Subfolder("logs");
  ASSERT_TRUE(logs);
  EXPECT_TRUE(std::filesystem::is_directory(*logs));
}

}  // namespace
}  // namespace optcache::cli
