// The endpoint over real sockets, with what it needs of the core held still.

#include "sidecar/s3/s3_endpoint.h"

#include <sys/socket.h>

#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "dataset/manifest_builder.h"
#include "net/http_client.h"
#include "sidecar/agent.h"
#include "support/temp_dir.h"

namespace optcache::sidecar {
namespace {

constexpr auto kWaitMax = std::chrono::minutes(1);

DatasetSource SourceAt(const std::string& store) {
  return {.name = "default/images",
          .manifest_file = "",
          .store_uri = store,
          .keys_folder = "",
          .rates = {}};
}

TEST(S3Endpoint, KnowsDatasetsByBucketOrName) {
  const auto named = KeyPlaceOf(SourceAt("file:///data"));
  EXPECT_EQ(named->bucket, "images");
  EXPECT_EQ(named->prefix, "");
  const auto bucket = KeyPlaceOf(SourceAt("s3://data/train?region=eu-west-1&endpoint=http://h:1"));
  EXPECT_EQ(bucket->bucket, "data");
  EXPECT_EQ(bucket->prefix, "train/");
  EXPECT_EQ(bucket->region, "eu-west-1");
}

TEST(S3Endpoint, TakesSamplersOfItsDatasets) {
  S3EndpointOptions options;
  const std::vector<DatasetSource> sources = {SourceAt("file:///data")};
  EXPECT_TRUE(AddSampler("default/images=torch-distributed,seed=1,world=2", sources, options).ok());
  EXPECT_EQ(options.samplers.at("default/images").recipe.world, 2U);
  EXPECT_TRUE(AddSampler("images=sequential", sources, options).ok());
  EXPECT_EQ(options.samplers.at("default/images").recipe.kind, sampler::Kind::kSequential);
  EXPECT_FALSE(AddSampler("default/images", sources, options).ok());
  EXPECT_FALSE(AddSampler("default/others=sequential", sources, options).ok());
  EXPECT_FALSE(AddSampler("default/images=none", sources, options).ok());
  std::vector<DatasetSource> two = {SourceAt("file:///data"), SourceAt("file:///more")};
  two.back().name = "vision/images";
  EXPECT_FALSE(AddSampler("images=sequential", two, options).ok());
  EXPECT_TRUE(AddSampler("vision/images=sequential", two, options).ok());
}

// A sidecar over a folder of two files, and no node.
class S3AgentTest : public testing::Test {
 protected:
  Result<std::unique_ptr<Agent>> StartAt(const std::string& address, const std::string& store) {
    return Agent::Start(loop_, SystemClock(),
                        {.name = "test",
                         .socket = dir_.Join("socket"),
                         .node = "127.0.0.1:1",
                         .arena_bytes = 1_MiB,
                         .datasets = {{.name = "images",
                                       .manifest_file = dir_.Join("manifest"),
                                       .store_uri = store,
                                       .keys_folder = "",
                                       .rates = {}}},
                         .s3 = {.address = address, .samplers = {}}});
  }
  void SetUp() override {
    dataset::ManifestBuilder builder(dataset::Order::kPath, {});
    dir_.Write("one", "the first");
    dir_.Write("two", "the second");
    ASSERT_TRUE(builder.Add({.path = "one", .size = 9}).ok());
    ASSERT_TRUE(builder.Add({.path = "two", .size = 10}).ok());
    dir_.Write("manifest", std::move(builder).Finish().value().bytes());
  }
  net::HttpResponse Ask(std::string method, const std::string& target,
                        net::HttpHeaders headers = {}, std::string body = "") {
    if (agent_ == nullptr) {
      auto agent = StartAt("127.0.0.1:0", "file://" + dir_.path());
      EXPECT_TRUE(agent.has_value()) << agent.error().ToString();
      agent_ = std::move(*agent);
      http_ = net::MakeHttpClient(loop_, {});
    }
    Result<net::HttpResponse> answer = Error(Code::kInternal, "no answer");
    http_->Send({.method = std::move(method),
                 .url = "http://127.0.0.1:" + std::to_string(agent_->s3_port()) + target,
                 .headers = std::move(headers),
                 .body = std::move(body)},
                kWaitMax, [&](Result<net::HttpResponse> response) {
                  answer = std::move(response);
                  loop_.Stop();
                });
    loop_.Run();
    EXPECT_TRUE(answer.has_value()) << answer.error().ToString();
    return answer.value_or(net::HttpResponse{});
  }

  TempDir dir_;
  net::EventLoop loop_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<net::HttpClient> http_;
};

TEST_F(S3AgentTest, ServesObjectsAndRanges) {
  EXPECT_EQ(Ask("GET", "/images/two").body, "the second");
  const net::HttpResponse part = Ask("GET", "/images/one", {{"Range", "bytes=4-"}});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, "first");
  const net::HttpResponse head = Ask("HEAD", "/images/one");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(net::ContentLength(head.headers), 9U);
  EXPECT_EQ(Ask("GET", "/images/three").status, 404);
  EXPECT_NE(Ask("GET", "/images?list-type=2").body.find("<KeyCount>2"), std::string::npos);
}

TEST_F(S3AgentTest, GivesEachRequestAnIdOfItsOwn) {
  std::set<std::string> ids;
  const auto id_of = [&ids](const net::HttpResponse& response) {
    std::string id(net::FindHeader(response.headers, "x-amz-request-id").value_or(""));
    EXPECT_EQ(id.size(), 16U);
    EXPECT_TRUE(ids.insert(id).second) << id;
    return id;
  };
  for (const char* const target : {"/", "/images/one", "/images/one", "/images?list-type=2"})
    id_of(Ask("GET", target));
  id_of(Ask("HEAD", "/images/one"));
  const std::string huge(40'000, 'x');
  for (const net::HttpResponse& failed :
       {Ask("GET", "/images/three"), Ask("PUT", "/images/new", {}, "a checkpoint"),
        Ask("GET", "/", {{"Host", "evil.example"}}), Ask("GET", "/", {{"X", huge}})})
    EXPECT_NE(failed.body.find("<RequestId>" + id_of(failed) + "<"), std::string::npos);
}

TEST_F(S3AgentTest, WhatIsGoneFromTheStoreIsNoSuchKey) {
  ASSERT_EQ(Ask("GET", "/images/two").status, 200);
  std::filesystem::remove(dir_.Join("one"));
  const net::HttpResponse gone = Ask("GET", "/images/one");
  EXPECT_EQ(gone.status, 404);
  EXPECT_NE(gone.body.find("<Code>NoSuchKey</Code>"), std::string::npos) << gone.body;
}

TEST_F(S3AgentTest, RefusesWritesBeforeTheirBodies) {
  const net::HttpResponse refused = Ask("PUT", "/images/new", {}, "a checkpoint");
  EXPECT_EQ(refused.status, 403);
  EXPECT_NE(refused.body.find("endpoint_url="), std::string::npos);
  EXPECT_EQ(Ask("DELETE", "/images/one").status, 403);
}

TEST_F(S3AgentTest, AnswersToNamesOfTheLoopbackAlone) {
  EXPECT_EQ(Ask("GET", "/images/two", {{"Host", "localhost:9999"}}).body, "the second");
  for (const char* const method : {"GET", "HEAD", "PUT"}) {
    const net::HttpResponse refused = Ask(method, "/images/two", {{"Host", "evil.example"}}, "");
    EXPECT_EQ(refused.status, 403) << method;
    if (std::string_view(method) == "HEAD") continue;
    EXPECT_NE(refused.body.find("<Code>AccessDenied</Code>"), std::string::npos) << refused.body;
    EXPECT_NE(refused.body.find("names of the loopback"), std::string::npos) << refused.body;
  }
}

TEST_F(S3AgentTest, ServesTheBucketOfTheHost) {
  EXPECT_EQ(Ask("GET", "/two", {{"Host", "images.localhost:4104"}}).body, "the second");
  EXPECT_NE(Ask("GET", "/?list-type=2", {{"Host", "images.localhost"}}).body.find("<KeyCount>2"),
            std::string::npos);
  EXPECT_NE(Ask("GET", "/two", {{"Host", "others.localhost"}}).body.find("NoSuchBucket"),
            std::string::npos);
}

TEST_F(S3AgentTest, TakesAnySignature) {
  const std::string fourth =
      "AWS4-HMAC-SHA256 Credential=id/20260101/us-east-1/s3/aws4_request, "
      "SignedHeaders=host;x-amz-date, Signature=00ff";
  for (const std::string& signature :
       {fourth, std::string("AWS id:c2lnbmF0dXJl"), std::string("AWS4-HMAC-SHA256"),
        std::string("AWS"), std::string("Bearer ,=\xff;"), std::string(4000, ':')}) {
    EXPECT_EQ(Ask("GET", "/images/two", {{"Authorization", signature}}).body, "the second");
    EXPECT_EQ(Ask("HEAD", "/images/two", {{"Authorization", signature}}).status, 200);
  }
  EXPECT_EQ(Ask("GET", "/images/two?AWSAccessKeyId=id&Signature=a%2Bb&Expires=1").status, 200);
  EXPECT_EQ(Ask("GET", "/images?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=0").status, 200);
}

TEST_F(S3AgentTest, RefusesUploadsInSignedPieces) {
  const net::HttpResponse refused =
      Ask("PUT", "/images/new",
          {{"x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"},
           {"Content-Encoding", "aws-chunked"},
           {"x-amz-decoded-content-length", "3"}},
          "3;chunk-signature=00ff\r\nabc\r\n0;chunk-signature=00ff\r\n\r\n");
  EXPECT_EQ(refused.status, 403);
  EXPECT_NE(refused.body.find("<Code>AccessDenied</Code>"), std::string::npos) << refused.body;
}

TEST_F(S3AgentTest, WhatIsNotModifiedHasNoBody) {
  const net::HttpResponse whole = Ask("GET", "/images/two");
  const std::string etag(net::FindHeader(whole.headers, "ETag").value_or(""));
  const net::HttpResponse same = Ask("GET", "/images/two", {{"If-None-Match", etag}});
  EXPECT_EQ(same.status, 304);
  EXPECT_EQ(same.body, "");
  EXPECT_EQ(net::FindHeader(same.headers, "ETag"), etag);
  EXPECT_TRUE(net::FindHeader(same.headers, "Last-Modified"));
  EXPECT_EQ(Ask("GET", "/images/two").body, "the second") << "on the same connection";
}

TEST_F(S3AgentTest, AnswersWhatIsNoRequestAsAnErrorOfS3) {
  const net::HttpResponse refused = Ask("GET", "/images/two", {{"X", std::string(40'000, 'x')}});
  EXPECT_EQ(refused.status, 431);
  EXPECT_NE(refused.body.find("<Code>RequestHeaderSectionTooLarge</Code>"), std::string::npos)
      << refused.body;
}

TEST_F(S3AgentTest, CountsWhatItIsAskedFor) {
  Ask("GET", "/images/two");
  Ask("DELETE", "/images/two");
  Ask("PUT", "/images/two", {}, "with a body");
  std::map<std::string, double> found;
  agent_->VisitCounters(
      [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
        if (name == "optcache_s3_requests_total") found[labels.front().second] = value;
      });
  EXPECT_EQ(found["get_object"], 1);
  EXPECT_EQ(found["refused"], 2);
  EXPECT_EQ(found["head_object"], 0);
}

TEST_F(S3AgentTest, ListensOnTheLoopbackAlone) {
  for (const char* const address :
       {"0.0.0.0:0", "*:0", "unix:/tmp/s3", "10.0.0.1:0", "127.example.org:0", "here"}) {
    const auto agent = StartAt(address, "file://" + dir_.path());
    ASSERT_FALSE(agent.has_value()) << address;
    EXPECT_EQ(agent.error().code(), Code::kInvalidArgument);
  }
}

TEST_F(S3AgentTest, IsNotItsOwnStore) {
  for (const char* store : {"s3://data?endpoint=http://127.0.0.1:4104",
                            "s3://data?endpoint=http%3A%2F%2Flocalhost%3A4104"}) {
    const auto agent = StartAt("127.0.0.1:4104", store);
    ASSERT_FALSE(agent.has_value()) << store;
    EXPECT_NE(agent.error().message().find("itself"), std::string::npos);
  }
}

}  // namespace
}  // namespace optcache::sidecar
