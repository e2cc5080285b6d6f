#include "sidecar/manifest_client.h"

#include <gtest/gtest.h>

#include "net/http_server.h"
#include "support/temp_dir.h"

namespace optcache::sidecar {
namespace {

using net::HttpResponse;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Answers each request with the next of its script, the last one again and again.
class FakeNode {
 public:
  FakeNode(net::EventLoop& loop, std::vector<HttpResponse> script) : script_(std::move(script)) {
    server_ = net::ListenHttp(loop, "127.0.0.1:0", {},
                              [this](const net::HttpRequest& request, net::HttpResponder respond) {
                                requests.push_back(request);
                                if (script_.empty()) return kept_.push_back(std::move(respond));
                                respond(script_.front());
                                if (script_.size() > 1) script_.erase(script_.begin());
                              })
                  .value();
  }
  // To those who were not answered.
  void AnswerAll(const HttpResponse& response) {
    for (const net::HttpResponder& respond : kept_)
      respond(response);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }

  std::vector<net::HttpRequest> requests;

 private:
  std::vector<HttpResponse> script_;  // empty: it never answers
  std::vector<net::HttpResponder> kept_;
  std::unique_ptr<net::HttpServer> server_;
};

class ManifestFetchTest : public testing::Test {
 protected:
  void Start(std::vector<std::string> urls, std::string token_file = "") {
    fetch_ = std::make_unique<ManifestFetch>(
        loop_, *http_, ManifestPlaces{.urls = std::move(urls), .token_file = std::move(token_file)},
        "vision/imagenet",
        ManifestFetch::Hooks{.take =
                                 [this](std::string bytes) {
                                   taken_ = std::move(bytes);
                                   return taken_ == "rubbish" ? Status(Code::kDataLoss, "no magic")
                                                              : OkStatus();
                                 },
                             .explain = [this](const std::string& why) { whys_.push_back(why); }});
  }
  void RunUntil(const std::function<bool()>& done) {
    const net::Timer limit = loop_.After(seconds(30), [this] { loop_.Stop(); });
    Look(done);
    loop_.Run();
    EXPECT_TRUE(done());
  }
  void Look(const std::function<bool()>& done) {
    look_ = loop_.After(milliseconds(1), [this, &done] { done() ? loop_.Stop() : Look(done); });
  }
  void RunUntilDone() {
    RunUntil([this] { return fetch_->done(); });
  }

  TempDir dir_;
  net::EventLoop loop_;
  net::Timer look_;
  std::unique_ptr<net::HttpClient> http_ = net::MakeHttpClient(loop_);
  std::unique_ptr<ManifestFetch> fetch_;
  std::string taken_;
  std::vector<std::string> whys_;
};

TEST_F(ManifestFetchTest, AsksForTheDatasetByNameWithItsToken) {
  FakeNode node(loop_, {HttpResponse::Text(200, "bytes")});
  dir_.Write("token", "abc.def\n");
  Start({node.url()}, dir_.Join("token"));
  RunUntilDone();
  EXPECT_EQ(taken_, "bytes");
  EXPECT_EQ(node.requests.at(0).url, "/v1/datasets/vision/imagenet/manifest");
  EXPECT_EQ(net::FindHeader(node.requests.at(0).headers, "authorization"), "Bearer abc.def");
  EXPECT_TRUE(whys_.empty());
}

TEST_F(ManifestFetchTest, AsksAgainUntilItIsThereAndSaysWhyItWaits) {
  FakeNode node(loop_, {HttpResponse::Text(503, "vision/imagenet is being indexed\n"),
                        HttpResponse::Text(200, "bytes")});
  Start({node.url()});
  RunUntilDone();
  EXPECT_EQ(taken_, "bytes");
  EXPECT_EQ(whys_, std::vector<std::string>{"vision/imagenet is being indexed"});
}

TEST_F(ManifestFetchTest, APlaceThatNeverAnswersHoldsUpNothing) {
  FakeNode silent(loop_, {});
  FakeNode node(loop_, {HttpResponse::Text(200, "bytes")});
  Start({silent.url(), node.url()});
  RunUntilDone();
  EXPECT_EQ(taken_, "bytes");
  EXPECT_EQ(silent.requests.size(), 1U);
}

TEST_F(ManifestFetchTest, TheSecondPlaceIsLeftAloneWhenTheFirstAnswers) {
  FakeNode first(loop_, {HttpResponse::Text(200, "bytes")});
  FakeNode second(loop_, {HttpResponse::Text(200, "others")});
  Start({first.url(), second.url()});
  RunUntilDone();
  const net::Timer later = loop_.After(milliseconds(400), [this] { loop_.Stop(); });
  loop_.Run();
  EXPECT_EQ(taken_, "bytes");
  EXPECT_TRUE(second.requests.empty());
}

TEST_F(ManifestFetchTest, WhatIsNoManifestIsAskedForAgain) {
  FakeNode node(loop_, {HttpResponse::Text(200, "rubbish"), HttpResponse::Text(200, "bytes")});
  Start({node.url()});
  RunUntilDone();
  EXPECT_EQ(taken_, "bytes");
  ASSERT_EQ(whys_.size(), 1U);
  EXPECT_NE(whys_[0].find("no magic"), std::string::npos);
}

TEST_F(ManifestFetchTest, WhatANodeSaysStandsOverWhoCannotBeReached) {
  FakeNode node(loop_, {HttpResponse::Text(403, "namespace speech may not use it")});
  Start({"http://127.0.0.1:1", node.url()});
  RunUntil([&] { return node.requests.size() >= 3; });
  EXPECT_EQ(whys_.back(), "namespace speech may not use it");
}

TEST_F(ManifestFetchTest, ATokenThatIsWrittenLaterIsUsed) {
  FakeNode node(loop_, {HttpResponse::Text(200, "bytes")});
  Start({node.url()}, dir_.Join("token"));
  RunUntil([&] { return !whys_.empty(); });
  EXPECT_TRUE(node.requests.empty());
  dir_.Write("token", "late");
  RunUntilDone();
  EXPECT_EQ(net::FindHeader(node.requests.at(0).headers, "authorization"), "Bearer late");
}

TEST_F(ManifestFetchTest, NothingComesAfterItsEnd) {
  FakeNode node(loop_, {});
  Start({node.url()});
  RunUntil([&] { return !node.requests.empty(); });
  fetch_.reset();
  node.AnswerAll(HttpResponse::Text(200, "bytes"));
  const net::Timer later = loop_.After(milliseconds(100), [this] { loop_.Stop(); });
  loop_.Run();
  EXPECT_EQ(taken_, "");
}

}  // namespace
}  // namespace optcache::sidecar
