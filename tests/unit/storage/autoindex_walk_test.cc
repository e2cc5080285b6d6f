#include "storage/internal/autoindex_walk.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::storage::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class AutoindexWalkTest : public testing::Test {
 protected:
  Result<ObjectListing> Walk() {
    return WalkAutoindex({.base_path = "/data/",
                          .concurrent_max = 4,
                          .deadline = Deadline(MonotonicTime::max()),
                          .progress = {}},
                         [this](const std::string& folder) -> Result<std::string> {
                           const auto page = pages_.find(folder);
                           if (page == pages_.end()) return Error(Code::kPermissionDenied, folder);
                           return page->second;
                         });
  }

  std::map<std::string, std::string> pages_;  // by folder; read by several threads, never changed
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

// A server that shows the same page for whatever is asked would never come to an end.
TEST_F(AutoindexWalkTest, FoldersWithoutEndAreRefused) {
  const auto page = [](const std::string&) -> Result<std::string> {
    return std::string("<a href='again-and-again-and-again/'>a</a>");
  };
  const auto endless = WalkAutoindex({.base_path = "/",
                                      .concurrent_max = 2,
                                      .deadline = Deadline(MonotonicTime::max()),
                                      .progress = {}},
                                     page);
  EXPECT_EQ(endless.error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace optcache::storage::internal
