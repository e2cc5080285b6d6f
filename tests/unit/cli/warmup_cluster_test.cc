#include "cli/warmup/warmup_cluster.h"

#include <fcntl.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/unique_fd.h"
#include "unit/cli/fake_kubectl.h"

namespace optcache::cli {
namespace {

using nlohmann::json;

constexpr const char* kMadeWarmup =
    R"({"kind": "Warmup", "metadata": {"name": "images-x2k"}, "spec": {"dataset": "images"}})";

std::string WarmupAt(const std::string& progress, const std::string& complete,
                     const std::string& failed, const std::string& message) {
  json object = json::parse(kMadeWarmup);
  object["status"] = {{"progress", progress}, {"bytes", 600}, {"totalBytes", 1000}};
  object["status"]["conditions"] = {
      {{"type", "Complete"}, {"status", complete}, {"reason", "Warming"}, {"message", message}},
      {{"type", "Failed"}, {"status", failed}, {"reason", "WarmupFailed"}, {"message", message}}};
  return object.dump();
}

class WarmupClusterTest : public testing::Test {
 protected:
  Status Warm(const FakeKubectl& fake, ClusterWarmup warmup) {
    warmup.dataset = "images";
    warmup.interval = std::chrono::milliseconds(1);
    const UniqueFd out(::open(dir_.Join("out").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600));
    testing::internal::CaptureStdout();
    Status status = WarmInCluster(fake.kubectl(), warmup, out.get());
    printed_ = testing::internal::GetCapturedStdout();
    return status;
  }
  std::string Said() const { return ReadFile(dir_.Join("out"), 1_MiB).value_or(""); }
  static std::vector<FakeKubectl::Rule> Rules(std::vector<std::string> looks) {
    return {{.words = "get datasets.optcache.io/images", .answers = {"dataset/images"}},
            {.words = "create", .answers = {kMadeWarmup}},
            {.words = "get warmups.optcache.io/images-x2k", .answers = std::move(looks)}};
  }

  TempDir dir_;
  std::string printed_;
};

TEST(WarmupObject, SaysWhatTheUserWants) {
  EXPECT_EQ(json::parse(WarmupObject({.dataset = "images"})),
            json::parse(R"({"apiVersion": "optcache.io/v1alpha1", "kind": "Warmup",
                            "metadata": {"generateName": "images-"},
                            "spec": {"dataset": "images"}})"));
  EXPECT_EQ(json::parse(WarmupObject({.dataset = "images",
                                      .name = "now",
                                      .bandwidth = "500Mi",
                                      .ttl = std::chrono::hours(1)}))["spec"],
            json::parse(R"({"dataset": "images", "bandwidth": "500Mi",
                            "ttlSecondsAfterFinished": 3600})"));
  EXPECT_EQ(json::parse(WarmupObject(
                {.dataset = "images", .ttl = std::chrono::hours(1), .on_indexed = true}))["spec"],
            json::parse(R"({"dataset": "images", "when": "OnIndexed"})"));
}

TEST_F(WarmupClusterTest, IsMadeAndNotWaitedFor) {
  const FakeKubectl fake(Rules({}));
  ASSERT_TRUE(Warm(fake, {.name_space = "vision"}).ok());
  EXPECT_EQ(printed_, "warmup.optcache.io/images-x2k created\n");
  EXPECT_TRUE(fake.Calls().contains("create --filename=- --output=json --namespace=vision"));
  EXPECT_TRUE(fake.Input().contains("generateName"));
}

TEST_F(WarmupClusterTest, IsFollowedToItsEnd) {
  const FakeKubectl fake(Rules({kMadeWarmup, WarmupAt("60%", "False", "False", "some"),
                                "Error: the connection was refused",
                                WarmupAt("100%", "True", "False", "10 samples lie at nodes")}));
  ASSERT_TRUE(Warm(fake, {.wait = true}).ok());
  EXPECT_EQ(Said(), "images  [############--------]  60 %  600 B of 1000 B\n");
  EXPECT_TRUE(printed_.ends_with("images: 10 samples lie at nodes\n"));
}

TEST_F(WarmupClusterTest, AFailureIsAnErrorWithItsSentence) {
  const FakeKubectl fake(Rules({WarmupAt("10%", "False", "True", "s3://b: access denied")}));
  const Status status = Warm(fake, {.wait = true, .output = "json"});
  EXPECT_EQ(status.message(), "warmup/images-x2k has failed");
  const json told = json::parse(printed_);
  EXPECT_EQ(told["state"], "Failed");
  EXPECT_EQ(told["message"], "s3://b: access denied");
}

TEST_F(WarmupClusterTest, WaitingHasAnEnd) {
  const FakeKubectl fake(Rules({WarmupAt("60%", "False", "False", "some")}));
  const Status status = Warm(fake, {.wait = true, .timeout = std::chrono::milliseconds(1)});
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(status.message(), "timed out waiting for warmup/images-x2k, which goes on: some");
}

TEST_F(WarmupClusterTest, WhatIsMissingIsSaidBeforeAnythingIsMade) {
  const FakeKubectl fake(std::vector<FakeKubectl::Rule>{
      {.words = "get datasets", .answers = {"Error from server (NotFound): no images"}}});
  EXPECT_EQ(Warm(fake, {}).code(), Code::kNotFound);
  EXPECT_FALSE(fake.Calls().contains("create"));
  const FakeKubectl bare(std::vector<FakeKubectl::Rule>{
      {.words = "get datasets", .answers = {"Error: the server doesn't have a resource type"}}});
  EXPECT_EQ(Warm(bare, {}).code(), Code::kNotFound);
  EXPECT_TRUE(Warm(bare, {}).message().contains("optcache is not installed"));
}

TEST(WarmupView, WhatIsNoWarmupIsAnError) {
  for (const char* text : {"", "[]", "{}", R"({"kind": "Dataset"})"})
    EXPECT_FALSE(ReadWarmupView(text)) << text;
}

}  // namespace
}  // namespace optcache::cli
