#include "sidecar/programs/warm_subcommand.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "support/temp_dir.h"

namespace optcache::sidecar {
namespace {

// What it does with a node and a store, tests/integration/test_warmup.py says.
class WarmSubcommandTest : public testing::Test {
 protected:
  std::string Fault() {
    const Status status = RunWarm(flags_);
    EXPECT_FALSE(status.ok());
    const auto told = nlohmann::json::parse(ReadFile(dir_.Join("end"), 4096).value_or("null"));
    EXPECT_EQ(told, nlohmann::json({{"message", status.message()}}));
    return status.message();
  }

  TempDir dir_;
  WarmFlags flags_{.name = "warmer",
                   .node = "127.0.0.1:1",
                   .datasets = {"vision/birds==" + dir_.Join("data")},
                   .manifests = {"http://127.0.0.1:1"},
                   .timeout_s = 30,
                   .termination_file = dir_.Join("end")};
};

TEST_F(WarmSubcommandTest, WhatIsWrongIsTold) {
  flags_.parts = {"node1=5Mi", "node2=5Mi"};
  flags_.at = "node3";
  EXPECT_EQ(Fault(), "--at node3: there is no --part of that name");
  flags_.parts = {"node3=much"};
  EXPECT_TRUE(Fault().contains("much"));
  flags_.parts = {};
  flags_.order = "torch-tired size=5";
  EXPECT_TRUE(Fault().contains("torch-tired"));
  flags_.order = "";
  flags_.datasets.push_back("vision/cats==/data");
  EXPECT_EQ(Fault(), "warm takes one --dataset");
}

TEST_F(WarmSubcommandTest, AManifestThatNobodyHasIsAnError) {
  flags_.manifests.clear();
  EXPECT_TRUE(Fault().contains("where is its manifest"));
}

TEST(WarmProgress, IsOneLineOfJson) {
  const auto json = nlohmann::json::parse(ProgressLine({.samples = 10,
                                                        .bytes = 1000,
                                                        .held = 2,
                                                        .held_bytes = 200,
                                                        .read = 3,
                                                        .read_bytes = 300,
                                                        .no_room = 1}));
  EXPECT_EQ(json, nlohmann::json({{"samples", 6},
                                  {"totalSamples", 10},
                                  {"totalBytes", 1000},
                                  {"held", 2},
                                  {"heldBytes", 200},
                                  {"read", 3},
                                  {"readBytes", 300},
                                  {"noRoom", 1},
                                  {"failed", 0}}));
}

TEST(WarmProgress, SaysWhyTheFirstCouldNotBeRead) {
  const auto said = [](const std::string& why) {
    const std::string line =
        ProgressLine({.samples = 3, .failed = 1}, Status(Code::kNotFound, why));
    return nlohmann::json::parse(line).at("firstFailure").get<std::string>();
  };
  EXPECT_EQ(said("\"a\".jpg is gone"), "\"a\".jpg is gone");
  EXPECT_EQ(said("\xff.jpg"), "\xef\xbf\xbd.jpg");
  EXPECT_EQ(said(std::string(4096, 'x')).size(), 500U);
}

}  // namespace
}  // namespace optcache::sidecar
