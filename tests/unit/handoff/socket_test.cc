#include "handoff/socket.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace optcache::handoff {
namespace {

class Socket : public testing::Test {
 protected:
  Socket() {
    std::string name = testing::TempDir() + "optcacheXXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~Socket() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/s"; }

  std::string folder_;
};

TEST_F(Socket, TakesConnectionsOfEveryUser) {
  const auto listener = ListenAt(path());
  ASSERT_TRUE(listener) << listener.error().ToString();
  struct stat info{};
  ASSERT_EQ(::stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0666U);
  EXPECT_TRUE(ConnectTo(path()));
}

TEST_F(Socket, ReplacesOneThatNobodyListensTo) {
  {
    ASSERT_TRUE(ListenAt(path()));
  }
  EXPECT_EQ(ConnectTo(path()).error().code(), Code::kUnavailable);
  const auto listener = ListenAt(path());
  ASSERT_TRUE(listener) << listener.error().ToString();
  EXPECT_TRUE(ConnectTo(path()));
}

TEST_F(Socket, RefusesALiveOne) {
  const auto listener = ListenAt(path());
  EXPECT_EQ(ListenAt(path()).error().code(), Code::kConflict);
  EXPECT_TRUE(ConnectTo(path()));
}

TEST_F(Socket, RefusesWhatIsNoSocket) {
  std::ofstream(path()) << "mine";
  EXPECT_EQ(ListenAt(path()).error().code(), Code::kConflict);
  EXPECT_TRUE(std::filesystem::exists(path()));
}

TEST_F(Socket, RefusesAPathThatIsTooLong) {
  EXPECT_EQ(ListenAt(folder_ + "/" + std::string(120, 'a')).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(ListenAt("").error().code(), Code::kInvalidArgument);
}

TEST_F(Socket, SaysThatThereIsNone) {
  EXPECT_EQ(ConnectTo(path()).error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace optcache::handoff
