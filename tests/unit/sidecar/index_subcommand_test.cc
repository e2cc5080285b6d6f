#include "sidecar/programs/index_subcommand.h"

#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "dataset/manifest.h"
#include "support/temp_dir.h"
#include "unit/sidecar/scripted_node.h"

namespace optcache::sidecar {
namespace {

using Json = nlohmann::json;
using net::HttpResponse;

// The verb blocks its thread, so the node has another.
class IndexSubcommandTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_.Write("data/a.jpg", "one");
    dir_.Write("data/b.jpg", "three");
    dir_.Write("data/notes.txt", "not a sample");
    flags_ = {
        .dataset = "vision/birds",
        .source = dir_.Join("data"),
        .store = {.retry = {.patience = Duration::zero(), .first_patience = Duration::zero()}},
        .include = {"*.jpg"},
        .order = "Path",
        .timeout_s = 30,
        .termination_file = dir_.Join("termination")};
  }
  Status Run(HttpResponse answer) {
    return RunScript({HttpResponse::Text(202, ""), std::move(answer)});
  }
  Status RunScript(std::vector<HttpResponse> script) {
    ScriptedNode node(loop_, std::move(script));
    flags_.manifests = {node.url()};
    Status status;
    {
      const std::jthread serving([this] { loop_.Run(); });
      status = RunIndex(flags_);
      loop_.Stop();
    }
    requests_ = node.requests;
    return status;
  }
  Json Message() const {
    return Json::parse(ReadFile(dir_.Join("termination"), 4096).value_or("null"));
  }

  TempDir dir_;
  net::EventLoop loop_;
  IndexFlags flags_;
  std::vector<net::HttpRequest> requests_;
};

TEST_F(IndexSubcommandTest, TheNodeGetsTheManifestAndTheOperatorItsDigest) {
  const Status status = Run(HttpResponse::Text(201, ""));
  ASSERT_TRUE(status.ok()) << status.message();
  const auto manifest = dataset::Manifest::Parse(requests_.at(1).body);
  ASSERT_TRUE(manifest.has_value());
  EXPECT_EQ(manifest->samples(), 2U);
  EXPECT_FALSE(manifest->SampleDigest(0).has_value());
  EXPECT_EQ(Message(), Json({{"digest", dataset::ToHex(manifest->digest())},
                             {"samples", 2},
                             {"bytes", 8},
                             {"largest", 5}}));
}

TEST_F(IndexSubcommandTest, SaysWhatChangedSinceTheManifestOfBefore) {
  ASSERT_TRUE(Run(HttpResponse::Text(201, "")).ok());
  const std::string before = requests_.at(1).body;
  flags_.before = Message()["digest"];
  dir_.Write("data/a.jpg", "longer");
  dir_.Write("data/c.jpg", "new");
  const Status status =
      RunScript({HttpResponse::Text(202, ""), HttpResponse::Text(201, ""),
                 HttpResponse::Text(503, "wait"), HttpResponse::Text(200, before)});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(requests_.at(2).url, "/v1/datasets/vision/birds/manifest");
  EXPECT_EQ(Message()["changes"], Json({{"added", {{"count", 1}, {"first", "c.jpg"}}},
                                        {"changed", {{"count", 1}, {"first", "a.jpg"}}},
                                        {"removed", {{"count", 0}}}}));
}

TEST_F(IndexSubcommandTest, AsksForNoManifestOfBeforeWhereNothingChanged) {
  ASSERT_TRUE(Run(HttpResponse::Text(201, "")).ok());
  flags_.before = Message()["digest"];
  ASSERT_TRUE(Run(HttpResponse::Text(201, "")).ok());
  EXPECT_EQ(requests_.size(), 2U);
  EXPECT_FALSE(Message().contains("changes"));
}

TEST_F(IndexSubcommandTest, ComparesWithNoManifestOfBeforeThatIsTooLarge) {
  for (int i = 0; i < 20; ++i)
    dir_.Write("data/z" + std::to_string(i) + ".jpg", "more");
  ASSERT_TRUE(Run(HttpResponse::Text(201, "")).ok());
  const std::string before = requests_.at(1).body;
  flags_.before = Message()["digest"];
  flags_.compared_bytes_max = before.size() - 1;
  flags_.include = {"a.jpg"};
  const Status status = RunScript(
      {HttpResponse::Text(202, ""), HttpResponse::Text(201, ""), HttpResponse::Text(200, before)});
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(requests_.size(), 3U) << "it asks once";
  EXPECT_EQ(Message()["samples"], 1);
  EXPECT_FALSE(Message().contains("changes"));
}

TEST_F(IndexSubcommandTest, AsksForNoManifestOfBeforeWhereTheNewOneIsTooLarge) {
  ASSERT_TRUE(Run(HttpResponse::Text(201, "")).ok());
  flags_.before = Message()["digest"];
  flags_.compared_bytes_max = 1;
  dir_.Write("data/c.jpg", "new");
  ASSERT_TRUE(Run(HttpResponse::Text(201, "")).ok());
  EXPECT_EQ(requests_.size(), 2U);
  EXPECT_EQ(Message()["samples"], 3);
  EXPECT_FALSE(Message().contains("changes"));
}

TEST_F(IndexSubcommandTest, VerifyDigestReadsAllBytesOnce) {
  flags_.verify = "Digest";
  ASSERT_TRUE(Run(HttpResponse::Text(201, "")).ok());
  const auto manifest = dataset::Manifest::Parse(requests_.at(1).body);
  ASSERT_TRUE(manifest.has_value());
  EXPECT_EQ(manifest->SampleDigest(1), dataset::Sha256Of(AsBytes("three")));
}

TEST_F(IndexSubcommandTest, ASourceThatIsNotThereIsTold) {
  flags_.source = "http://127.0.0.1:1/images";
  const Status status = Run(HttpResponse::Text(201, ""));
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_EQ(Message()["reason"], "SourceUnreachable");
  EXPECT_EQ(Message()["message"], status.message());
  EXPECT_TRUE(requests_.empty());
}

TEST_F(IndexSubcommandTest, ASourceWithoutSamplesIsTold) {
  flags_.include = {"*.flac"};
  EXPECT_FALSE(Run(HttpResponse::Text(201, "")).ok());
  EXPECT_EQ(Message()["reason"], "SourceInvalid");
}

TEST_F(IndexSubcommandTest, ANodesRefusalIsTold) {
  EXPECT_FALSE(Run(HttpResponse::Text(403, "this token is of namespace speech")).ok());
  EXPECT_EQ(Message(), Json({{"reason", "ManifestRefused"},
                             {"message", "this token is of namespace speech"}}));
}

TEST_F(IndexSubcommandTest, WordsThatItDoesNotKnowAreAnError) {
  flags_.order = "Random";
  EXPECT_FALSE(Run(HttpResponse::Text(201, "")).ok());
  EXPECT_EQ(Message()["message"], "--order Random: there are ImageFolder, Path and List");
  flags_.order = "Path";
  flags_.verify = "MD5";
  EXPECT_FALSE(Run(HttpResponse::Text(201, "")).ok());
  EXPECT_EQ(Message()["message"], "--verify MD5: there are Checksum and Digest");
}

}  // namespace
}  // namespace optcache::sidecar
