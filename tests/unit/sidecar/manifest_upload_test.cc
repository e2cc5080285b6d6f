#include "sidecar/manifests/manifest_upload.h"

#include "support/growing_deadline.h"
#include "support/temp_dir.h"
#include "unit/sidecar/scripted_node.h"

namespace optcache::sidecar {
namespace {

using net::HttpResponse;
using std::chrono::milliseconds;
using std::chrono::minutes;

class ManifestUploadTest : public LoopTest {
 protected:
  Status Upload(std::vector<std::string> urls, Duration timeout = minutes(2)) {
    dir_.Write("token", "abc.def\n");
    return UploadManifest(loop_, *http_,
                          {.urls = std::move(urls), .token_file = dir_.Join("token")},
                          {.dataset = "vision/birds",
                           .digest = "00ff",
                           .bytes = std::string("the manifest"),
                           .timeout = timeout});
  }
  TempDir dir_;
};

TEST_F(ManifestUploadTest, PutsTheBytesUnderTheirDigestWithTheToken) {
  ScriptedNode node(loop_, {HttpResponse::Text(202, ""), HttpResponse::Text(201, "")});
  EXPECT_TRUE(Upload({node.url()}).ok());
  const net::HttpRequest& request = node.requests.at(1);
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.url, "/v1/datasets/vision/birds/manifests/00ff");
  EXPECT_EQ(request.body, "the manifest");
  EXPECT_EQ(net::FindHeader(request.headers, "authorization"), "Bearer abc.def");
}

// What is refused is not sent, and the refusal is heard.
TEST_F(ManifestUploadTest, OffersItFirst) {
  ScriptedNode node(loop_, {HttpResponse::Text(202, ""), HttpResponse::Text(201, "")});
  EXPECT_TRUE(Upload({node.url()}).ok());
  const net::HttpRequest& offer = node.requests.at(0);
  EXPECT_EQ(offer.method, "GET");
  EXPECT_EQ(offer.url, "/v1/datasets/vision/birds/manifests/00ff?bytes=12");
  EXPECT_EQ(net::FindHeader(offer.headers, "authorization"), "Bearer abc.def");
}

TEST_F(ManifestUploadTest, WhatANodeHasIsNotSent) {
  ScriptedNode node(loop_, {HttpResponse::Text(201, "")});
  EXPECT_TRUE(Upload({node.url()}).ok());
  EXPECT_EQ(node.requests.size(), 1U);
}

TEST_F(ManifestUploadTest, ANodeThatKnowsNoOffersIsSentIt) {
  ScriptedNode node(
      loop_, {HttpResponse::Text(404, "there is no such page"), HttpResponse::Text(201, "")});
  EXPECT_TRUE(Upload({node.url()}).ok());
  EXPECT_EQ(node.requests.at(1).method, "PUT");
}

TEST_F(ManifestUploadTest, AfterAFailureItIsOfferedAgain) {
  ScriptedNode node(loop_, {HttpResponse::Text(202, ""), HttpResponse::Text(503, "busy"),
                            HttpResponse::Text(202, ""), HttpResponse::Text(201, "")});
  EXPECT_TRUE(Upload({node.url()}).ok());
  EXPECT_EQ(node.requests.at(2).method, "GET");
  EXPECT_EQ(node.requests.at(3).method, "PUT");
}

TEST_F(ManifestUploadTest, TriesOnWhileNodesAreBusyOrAway) {
  ScriptedNode node(loop_, {HttpResponse::Text(503, "busy"), HttpResponse::Text(201, "")});
  EXPECT_TRUE(Upload({"http://127.0.0.1:1", node.url()}).ok());
  EXPECT_EQ(node.requests.size(), 2U);
}

TEST_F(ManifestUploadTest, ARefusalThatStaysIsTheEnd) {
  for (const auto& [status, code] : {std::pair{400, Code::kInvalidArgument},
                                     {403, Code::kPermissionDenied},
                                     {413, Code::kResourceExhausted}}) {
    ScriptedNode node(loop_, {HttpResponse::Text(status, "a sentence\n")});
    const Status refused = Upload({node.url()});
    EXPECT_EQ(refused.code(), code);
    EXPECT_EQ(refused.message(), "a sentence");
    EXPECT_EQ(node.requests.size(), 1U);
  }
}

// The token may be a moment older than the API server likes; a rotated one is read next time.
TEST_F(ManifestUploadTest, ATokenThatIsNotTakenIsShownAgain) {
  ScriptedNode node(loop_, {HttpResponse::Text(401, "expired"), HttpResponse::Text(201, "")});
  EXPECT_TRUE(Upload({node.url()}).ok());
}

TEST_F(ManifestUploadTest, GivesUpWithTheLastReason) {
  ScriptedNode node(loop_, {HttpResponse::Text(503, "no room on the state volume")});
  Status status;
  EXPECT_TRUE(HoldsForSomeDeadline(milliseconds(300), [&](Duration timeout) {
    status = Upload({node.url()}, timeout);
    return status == Status(Code::kUnavailable, "no room on the state volume");
  })) << status.ToString();
}

}  // namespace
}  // namespace optcache::sidecar
