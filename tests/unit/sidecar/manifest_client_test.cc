#include "sidecar/manifests/manifest_client.h"

#include <fcntl.h>

#include "base/shared_bytes.h"
#include "support/temp_dir.h"
#include "unit/sidecar/scripted_node.h"

namespace optcache::sidecar {
namespace {

using net::HttpResponse;

class TooLarge final : public net::HttpBodySource {
 public:
  ByteCount size() const override { return 5_GiB; }
  Result<std::string> Read(std::size_t most) override { return std::string(most, 'x'); }
};

class ManifestFetchTest : public LoopTest {
 protected:
  void Start(std::vector<std::string> urls, std::string token_file = "") {
    fetch_ = std::make_unique<ManifestFetch>(
        loop_, *http_, ManifestPlaces{.urls = std::move(urls), .token_file = std::move(token_file)},
        "vision/imagenet",
        ManifestFetch::Hooks{.take =
                                 [this](const UniqueFd& file) {
                                   const auto bytes = SharedBytes::Map(file.get(), "it", 1_MiB);
                                   taken_ = bytes.value().view();
                                   return taken_ == "rubbish" ? Status(Code::kDataLoss, "no magic")
                                                              : OkStatus();
                                 },
                             .explain = [this](const std::string& why) { whys_.push_back(why); }});
  }
  void RunUntilDone() {
    RunUntil([this] { return fetch_->done(); });
  }

  TempDir dir_;
  std::unique_ptr<ManifestFetch> fetch_;
  std::string taken_;
  std::vector<std::string> whys_;
};

TEST_F(ManifestFetchTest, AsksForTheDatasetByNameWithItsToken) {
  ScriptedNode node(loop_, {HttpResponse::Text(200, "bytes")});
  dir_.Write("token", "abc.def\n");
  Start({node.url()}, dir_.Join("token"));
  RunUntilDone();
  EXPECT_EQ(taken_, "bytes");
  EXPECT_EQ(node.requests.at(0).url, "/v1/datasets/vision/imagenet/manifest");
  EXPECT_EQ(net::FindHeader(node.requests.at(0).headers, "authorization"), "Bearer abc.def");
  EXPECT_TRUE(whys_.empty());
}

TEST_F(ManifestFetchTest, AsksAgainUntilItIsThereAndSaysWhyItWaits) {
  ScriptedNode node(loop_, {HttpResponse::Text(503, "vision/imagenet is being indexed\n"),
                            HttpResponse::Text(200, "bytes")});
  Start({node.url()});
  RunUntilDone();
  EXPECT_EQ(taken_, "bytes");
  EXPECT_EQ(whys_, std::vector<std::string>{"vision/imagenet is being indexed"});
}

TEST_F(ManifestFetchTest, WhatIsNoManifestIsAskedForAgain) {
  ScriptedNode node(loop_, {HttpResponse::Text(200, "rubbish"), HttpResponse::Text(200, "bytes")});
  Start({node.url()});
  RunUntilDone();
  EXPECT_EQ(taken_, "bytes");
  ASSERT_EQ(whys_.size(), 1U);
  EXPECT_NE(whys_[0].find("no magic"), std::string::npos);
}

TEST_F(ManifestFetchTest, WhatComesIsSealed) {
  ScriptedNode node(loop_, {HttpResponse::Text(200, std::string(3'000'000, 'x'))});
  int seals = 0;
  fetch_ = std::make_unique<ManifestFetch>(
      loop_, *http_, ManifestPlaces{.urls = {node.url()}}, "vision/imagenet",
      ManifestFetch::Hooks{.take =
                               [&](const UniqueFd& file) {
                                 seals = ::fcntl(file.get(), F_GET_SEALS);
                                 EXPECT_EQ(SharedBytes::Map(file.get(), "it", 4_MiB)->size(),
                                           3'000'000U);
                                 return OkStatus();
                               },
                           .explain = [](const std::string&) {}});
  RunUntilDone();
  EXPECT_EQ(seals, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
}

TEST_F(ManifestFetchTest, OneThatIsTooLargeIsNotRead) {
  net::HttpResponse large{.status = 200};
  large.source = std::make_shared<TooLarge>();
  ScriptedNode node(loop_, {large, HttpResponse::Text(200, "bytes")});
  Start({node.url()});
  RunUntilDone();
  EXPECT_EQ(whys_, std::vector<std::string>{"the manifest has " + FormatBytes(5_GiB) +
                                            ", a sidecar takes " + FormatBytes(4_GiB)});
}

TEST_F(ManifestFetchTest, WhatANodeSaysStandsOverWhoCannotBeReached) {
  ScriptedNode node(loop_, {HttpResponse::Text(403, "namespace speech may not use it")});
  Start({"http://127.0.0.1:1", node.url()});
  RunUntil([&] { return node.requests.size() >= 3; });
  EXPECT_EQ(whys_.back(), "namespace speech may not use it");
}

TEST_F(ManifestFetchTest, ATokenThatIsWrittenLaterIsUsed) {
  ScriptedNode node(loop_, {HttpResponse::Text(200, "bytes")});
  Start({node.url()}, dir_.Join("token"));
  RunUntil([&] { return !whys_.empty(); });
  EXPECT_TRUE(node.requests.empty());
  dir_.Write("token", "late");
  RunUntilDone();
  EXPECT_EQ(net::FindHeader(node.requests.at(0).headers, "authorization"), "Bearer late");
}

TEST(CheckPlaces, NoTokenGoesInPlaintext) {
  const ManifestPlaces plain{.urls = {"http://a:1"}};
  const ManifestPlaces with_token{.urls = {"https://a:1"}, .token_file = "/token"};
  EXPECT_TRUE(CheckPlaces(plain, "").ok());
  EXPECT_TRUE(CheckPlaces(with_token, "/ca.crt").ok());
  EXPECT_EQ(CheckPlaces(with_token, "").code(), Code::kInvalidArgument);
  EXPECT_EQ(CheckPlaces(plain, "/ca.crt").code(), Code::kInvalidArgument);
  EXPECT_EQ(CheckPlaces({.urls = {"a:1"}}, "").code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace optcache::sidecar
