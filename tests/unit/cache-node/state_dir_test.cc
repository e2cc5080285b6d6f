#include "cache-node/control/state_dir.h"

#include <filesystem>
#include <utility>

#include <gtest/gtest.h>

#include "dataset/digest.h"
#include "support/temp_dir.h"

namespace optcache::node {
namespace {

namespace fs = std::filesystem;

coordination::DesiredState SomeState() {
  return {
      .version = {.term = 2, .counter = 7},
      .members = {{.id = 3, .name = "a", .address = "10.0.0.1:4100", .capacity = 9}},
      .datasets = {{.name = "vision/birds", .manifest_digest = std::string(64, 'a'), .key = 1}}};
}

class StateDirTest : public testing::Test {
 protected:
  TempDir temp_;
  StateDir dir_ = StateDir::Open(temp_.Join("state")).value();
};

TEST_F(StateDirTest, KeepsTheDesiredState) {
  EXPECT_FALSE(dir_.LoadState().has_value());
  ASSERT_TRUE(dir_.SaveState(SomeState()).ok());
  EXPECT_EQ(StateDir::Open(temp_.Join("state"))->LoadState(), SomeState());
}

TEST_F(StateDirTest, ADamagedStateIsNone) {
  ASSERT_TRUE(dir_.SaveState(SomeState()).ok());
  temp_.Write("state/state.json", "{\"version\": \"2.");
  EXPECT_FALSE(dir_.LoadState().has_value());
}

TEST_F(StateDirTest, KeepsTheBasesThatTheStateNames) {
  const auto digest_of = [](std::string_view bytes) {
    return dataset::ToHex(dataset::Sha256Of(AsBytes(bytes)));
  };
  coordination::DesiredState state = SomeState();
  state.datasets[0].base_digest = digest_of("one");
  ASSERT_TRUE(dir_.SavePart(digest_of("one"), "one", state).ok());
  EXPECT_EQ(dir_.LoadPart(digest_of("one")), "one");
  state.datasets[0].base_digest = digest_of("two");
  ASSERT_TRUE(dir_.SavePart(digest_of("two"), "two", state).ok());
  EXPECT_EQ(dir_.LoadPart(digest_of("one")), std::nullopt);
  EXPECT_EQ(dir_.LoadPart(digest_of("two")), "two");
  state.retiring = std::exchange(state.datasets, {});
  ASSERT_TRUE(dir_.SavePart(digest_of("three"), "three", state).ok());
  EXPECT_EQ(dir_.LoadPart(digest_of("two")), "two") << "of a manifest that jobs still read";
}

TEST_F(StateDirTest, ADamagedBaseIsNone) {
  const std::string digest = dataset::ToHex(dataset::Sha256Of(AsBytes(std::string_view("one"))));
  ASSERT_TRUE(dir_.SavePart(digest, "one", SomeState()).ok());
  temp_.Write("state/bases/" + digest, "two");
  EXPECT_EQ(dir_.LoadPart(digest), std::nullopt);
}

TEST_F(StateDirTest, NobodyElseReadsTheIdentity) {
  EXPECT_EQ(fs::status(dir_.identity()).permissions(), fs::perms::owner_all);
}

}  // namespace
}  // namespace optcache::node
