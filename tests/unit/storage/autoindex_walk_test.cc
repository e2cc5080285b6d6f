#include "storage/internal/autoindex_walk.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mutex.h"

namespace optcache::storage::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const PageRetryOptions kQuickPages = {
    .backoff = {.first = std::chrono::microseconds(1), .limit = std::chrono::microseconds(1)},
    .deadline = Deadline(MonotonicTime::max())};

class AutoindexWalkTest : public testing::Test {
 protected:
  Result<ObjectListing> Walk() {
    return WalkAutoindex(
        {.base_path = "/data/", .concurrent_max = 4, .pages = kQuickPages, .progress = {}},
        [this](const std::string& folder) -> Result<std::string> {
          {
            const MutexLock lock(mutex_);
            if (++asked_[folder] <= failures_) return Error(Code::kUnavailable, "HTTP 503");
          }
          const auto page = pages_.find(folder);
          if (page == pages_.end()) return Error(Code::kPermissionDenied, folder);
          return page->second;
        },
        SystemClock());
  }

  std::map<std::string, std::string> pages_;  // by folder; read by several threads, never changed
  int failures_ = 0;                          // of each page, before it comes
  Mutex mutex_;
  std::map<std::string, int> asked_ GUARDED_BY(mutex_);
};

TEST_F(AutoindexWalkTest, ListsAllFoldersSorted) {
  pages_ = {{"", "<a href='b%20b/'>b</a><a href='a.txt'>a</a><a href='empty/'>e</a>"},
            {"b b/", "<a href='../'>up</a><a href='2.jpg'>2</a><a href='/data/b%20b/c/'>c</a>"},
            {"b b/c/", "<a href='../'>up</a><a href='1.jpg'>1</a>"},
            {"empty/", "<a href='../'>up</a>"}};
  const ObjectListing listing = Walk().value();
  std::vector<std::string> paths;
  for (const ListedObject& object : listing.objects) {
    paths.push_back(object.path);
    EXPECT_FALSE(object.info.has_value());
  }
  EXPECT_THAT(paths, ElementsAre("a.txt", "b b/2.jpg", "b b/c/1.jpg"));
  EXPECT_THAT(listing.top_folders, ElementsAre("b b", "empty"));
}

TEST_F(AutoindexWalkTest, AFolderThatCannotBeReadEndsIt) {
  pages_ = {{"", "<a href='closed/'>c</a><a href='a.txt'>a</a>"}};
  EXPECT_EQ(Walk().error().code(), Code::kPermissionDenied);
  pages_["closed/"] = "no links";
  EXPECT_THAT(Walk().error().message(), HasSubstr("/closed/: the page has no links"));
}

// Each is asked for again alone: were the walk to begin again, a large tree would never be whole.
TEST_F(AutoindexWalkTest, APageThatFailsIsAskedForAgain) {
  std::string root;
  for (int folder = 0; folder < 50; ++folder) {
    const std::string name = std::to_string(folder) + "/";
    root += "<a href='" + name + "'>f</a>";
    pages_[name] = "<a href='1.jpg'>1</a>";
  }
  pages_[""] = root;
  failures_ = 1;
  const auto listing = Walk();
  ASSERT_TRUE(listing) << listing.error().message();
  EXPECT_EQ(listing->objects.size(), 50U);
  const MutexLock lock(mutex_);
  EXPECT_EQ(asked_.size(), 51U);
  for (const auto& [folder, times] : asked_)
    EXPECT_EQ(times, 2) << folder;
}

// A server that shows the same page for whatever is asked would never come to an end.
TEST_F(AutoindexWalkTest, FoldersWithoutEndAreRefused) {
  const auto page = [](const std::string&) -> Result<std::string> {
    return std::string("<a href='again-and-again-and-again/'>a</a>");
  };
  const auto endless =
      WalkAutoindex({.base_path = "/", .concurrent_max = 2, .pages = kQuickPages, .progress = {}},
                    page, SystemClock());
  EXPECT_EQ(endless.error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace optcache::storage::internal
