#include "storage/internal/walk.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_dir.h"

namespace optcache::storage::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class WalkTest : public testing::Test {
 protected:
  Result<ObjectListing> List() {
    return List(Deadline::After(SystemClock(), std::chrono::minutes(1)));
  }
  Result<ObjectListing> List(Deadline deadline) {
    return Walk({.root = dir_.path(), .threads = 3, .deadline = deadline, .progress = {}},
                SystemClock());
  }

  TempDir dir_;
};

std::vector<std::string> PathsOf(const ObjectListing& listing) {
  std::vector<std::string> paths;
  for (const ListedObject& object : listing.objects)
    paths.push_back(object.path);
  return paths;
}

TEST_F(WalkTest, ListsWhatLinksLeadToAsWell) {
  dir_.Write("b/1.jpg", "1");
  dir_.Write("a/x/2.jpg", "22");
  dir_.Write("top.jpg", "3");
  std::filesystem::create_directory(dir_.Join("empty"));
  std::filesystem::create_symlink("a", dir_.Join("link"));
  std::filesystem::create_symlink("nowhere", dir_.Join("a/dangling.jpg"));
  const ObjectListing listing = List().value();
  EXPECT_THAT(PathsOf(listing), ElementsAre("a/dangling.jpg", "a/x/2.jpg", "b/1.jpg",
                                            "link/dangling.jpg", "link/x/2.jpg", "top.jpg"));
  EXPECT_THAT(listing.top_folders, ElementsAre("a", "b", "empty", "link"));
  EXPECT_FALSE(listing.objects[0].info.has_value());
  EXPECT_EQ(listing.objects[1].info->size, 2U);
  EXPECT_NE(listing.objects[1].info->validator.modified_ns, 0);
}

TEST_F(WalkTest, ALoopOfLinksIsAnErrorThatNamesIt) {
  dir_.Write("a/1.jpg", "1");
  std::filesystem::create_symlink("..", dir_.Join("a/up"));
  const auto listing = List();
  ASSERT_FALSE(listing.has_value());
  EXPECT_EQ(listing.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(listing.error().message(), HasSubstr("a/up"));
}

TEST_F(WalkTest, ALinkOutOfTheRootIsRefused) {
  const TempDir outside;
  outside.Write("secret", "s");
  dir_.Write("a/1.jpg", "1");
  for (const std::string& target : {outside.Join("secret"), outside.path()}) {
    std::filesystem::create_symlink(target, dir_.Join("a/out"));
    const Status status = List().error();
    EXPECT_EQ(status.code(), Code::kPermissionDenied);
    EXPECT_THAT(status.message(), HasSubstr("a/out: a link that leads out of the source"));
    std::filesystem::remove(dir_.Join("a/out"));
  }
  std::filesystem::create_symlink(dir_.Join("a/1.jpg"), dir_.Join("in"));
  EXPECT_EQ(List()->objects.size(), 2U) << "an absolute link that stays inside";
}

TEST_F(WalkTest, TheRootItselfMayBeALink) {
  const TempDir links;
  dir_.Write("a/1.jpg", "1");
  std::filesystem::create_symlink("1.jpg", dir_.Join("a/2.jpg"));
  std::filesystem::create_symlink(dir_.path(), links.Join("root"));
  const auto listing = Walk({.root = links.Join("root"),
                             .deadline = Deadline::After(SystemClock(), std::chrono::minutes(1)),
                             .progress = {}},
                            SystemClock());
  EXPECT_THAT(PathsOf(*listing), ElementsAre("a/1.jpg", "a/2.jpg"));
}

TEST_F(WalkTest, ManyFilesOfOneFolderAreSharedAmongThreads) {
  constexpr int kFiles = 100'000;
  const int folder = ::open(dir_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; i < kFiles; ++i)
    ASSERT_EQ(::mknodat(folder, fmt::format("{:05}", i).c_str(), S_IFREG | 0644, 0), 0);
  ::close(folder);
  const ObjectListing listing = List().value();
  ASSERT_EQ(listing.objects.size(), kFiles);
  for (int i = 0; i < kFiles; ++i) {
    EXPECT_EQ(listing.objects[static_cast<size_t>(i)].path, fmt::format("{:05}", i));
    EXPECT_TRUE(listing.objects[static_cast<size_t>(i)].info.has_value());
  }
}

TEST_F(WalkTest, ListingEndsAtItsDeadline) {
  dir_.Write("a/1.jpg", "1");
  const Deadline past(SystemClock().Now() - std::chrono::seconds(1));
  EXPECT_EQ(List(past).error().code(), Code::kDeadlineExceeded);
}

TEST_F(WalkTest, AnEmptyFolderHoldsNothing) {
  EXPECT_TRUE(List()->objects.empty());
}

TEST_F(WalkTest, FindsEverythingInAWideTree) {
  for (int i = 0; i < 300; ++i)
    dir_.Write(fmt::format("d{}/e{}/f", i % 20, i), "x");
  EXPECT_EQ(List()->objects.size(), 300U);
  EXPECT_EQ(List()->top_folders.size(), 20U);
}

}  // namespace
}  // namespace optcache::storage::internal
