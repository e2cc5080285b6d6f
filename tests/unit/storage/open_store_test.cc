#include "storage/open_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_dir.h"

namespace optcache::storage {
namespace {

TEST(OpenStore, KnowsFoldersAndWebServers) {
  const TempDir dir;
  EXPECT_EQ(OpenStore(dir.path()).value()->name(), "file://" + dir.path());
  EXPECT_EQ(OpenStore("file://" + dir.path()).value()->name(), "file://" + dir.path());
  EXPECT_EQ(OpenStore("http://127.0.0.1:1/x/").value()->name(), "http://127.0.0.1:1/x");
  EXPECT_EQ(OpenStore("https://127.0.0.1:1").value()->name(), "https://127.0.0.1:1");
}

TEST(OpenStore, SaysWhichAddressesThereAre) {
  for (const std::string address : {"", "ftp://host/x", "file://"}) {
    const auto store = OpenStore(address);
    ASSERT_FALSE(store.has_value()) << address;
    EXPECT_EQ(store.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(store.error().message(), testing::HasSubstr("file:///folder"));
  }
}

TEST(OpenStore, AMissingFolderIsNotFound) {
  EXPECT_EQ(OpenStore("/nonexistent/folder").error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace optcache::storage
