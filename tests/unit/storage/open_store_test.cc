#include "storage/open_store.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"
#include "support/growing_deadline.h"
#include "support/read_waiter.h"
#include "support/scripted_http_server.h"
#include "support/surroundings.h"
#include "support/temp_dir.h"

namespace optcache::storage {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

ReadRequest RequestFor(std::string object, std::string& into) {
  into.assign(4, '.');
  return {.object = std::move(object),
          .offset = 0,
          .destination = std::as_writable_bytes(std::span(into)),
          .object_size = 4,
          .validator = {},
          .deadline = Deadline::After(SystemClock(), std::chrono::minutes(1))};
}

std::set<std::string> MetricsOf(const ObjectStore& store) {
  std::set<std::string> names;
  store.VisitCounters(
      [&](MetricKind, std::string_view name, const MetricLabels&, double) { names.emplace(name); });
  return names;
}

constexpr RetryOptions kQuickRetries = {
    .backoff = {.first = milliseconds(1), .limit = milliseconds(2)}};

TEST(OpenStore, KnowsFoldersWebServersAndBuckets) {
  const TempDir dir;
  EXPECT_EQ(OpenStore(dir.path()).value()->name(), "file://" + dir.path());
  EXPECT_EQ(OpenStore("file://" + dir.path()).value()->name(), "file://" + dir.path());
  EXPECT_EQ(OpenStore("http://127.0.0.1:1/x/").value()->name(), "http://127.0.0.1:1/x");
  EXPECT_EQ(OpenStore("https://127.0.0.1:1").value()->name(), "https://127.0.0.1:1");
  EXPECT_EQ(OpenStore("s3://bucket/a?endpoint=http://127.0.0.1:1").value()->name(),
            "s3://bucket/a/");
  EXPECT_EQ(OpenStore("s3://b").error().code(), Code::kInvalidArgument);
}

TEST(OpenStore, RatesReachTheLimitsBelowAllLayers) {
  const StoreRates most = {.requests_per_second = 100, .bytes_per_second = 1e6};
  for (const char* address :
       {"/tmp", "http://127.0.0.1:1/x", "s3://bucket/a?endpoint=http://127.0.0.1:1",
        "s3://bucket/a?endpoint=http://127.0.0.1:1&listing=list.txt"}) {
    const auto store = OpenStore(address, {.rates = most});
    ASSERT_TRUE(store.has_value()) << store.error().ToString();
    (*store)->SetRates({.requests_per_second = 3});
    EXPECT_EQ((*store)->Rates().most, most) << address;
    EXPECT_EQ((*store)->Rates().in_force,
              (StoreRates{.requests_per_second = 3, .bytes_per_second = 1e6}))
        << address;
  }
}

TEST(OpenStore, SaysWhichAddressesThereAre) {
  for (const std::string address : {"", "ftp://host/x", "file://"}) {
    const auto store = OpenStore(address);
    ASSERT_FALSE(store.has_value()) << address;
    EXPECT_EQ(store.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(store.error().message(), testing::HasSubstr("file:///folder"));
  }
}

TEST(OpenStore, TheListOfABucketStandsInItsAddress) {
  for (const char* const listing : {"lists/train.txt", kListingFile}) {
    const auto store = OpenStore("s3://bucket", {.listing = listing});
    ASSERT_FALSE(store.has_value()) << listing;
    EXPECT_EQ(store.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(store.error().message(),
                HasSubstr("write &listing=KEY (or ?listing=KEY) in the address"));
  }
}

TEST(OpenStore, AListOfABucketIsReadAndNothingIsListed) {
  ScriptedHttpServer server;
  const std::string list = "data/b/1 2\t5\t\"e\"\nother/d\t1\n";
  server.Put("bucket/lists/a+b.txt", list);
  const auto store =
      OpenStore("s3://bucket/data?endpoint=" + server.url() + "&listing=lists/a+b.txt",
                {.ambient_keys = false})
          .value();
  EXPECT_EQ(store->name(), "s3://bucket/data/");
  const auto listing = store->List(Deadline::After(SystemClock(), std::chrono::minutes(1)), {});
  ASSERT_TRUE(listing) << listing.error().message();
  ASSERT_EQ(listing->objects.size(), 1U);
  EXPECT_EQ(listing->objects[0].path, "b/1 2");
  ASSERT_EQ(server.requests().size(), 2U) << "a HEAD and a GET of the list";
  EXPECT_EQ(server.requests()[0].target, "/bucket/lists/a%2Bb.txt");
  EXPECT_EQ(server.requests()[1].target, "/bucket/lists/a%2Bb.txt");
}

TEST(OpenStore, AListThatBreaksOrIsDamagedIsReadAgain) {
  ScriptedHttpServer server;
  const std::string list = "data/a\t1\t\"e\"\ndata/b\t1\t\"e\"\n";
  server.Put("bucket/list", list, "\"v1\"");
  server.AnswerNext("bucket/list", {.headers = {"ETag: \"v1\""}, .body = list});  // to the HEAD
  const std::string wrong_crc = EncodeBase64(std::string(4, 'x'));
  server.AnswerNext("bucket/list", {.status = 503});
  server.AnswerNext(
      "bucket/list",
      {.headers = {"ETag: \"v1\"", "x-amz-checksum-crc32c: " + wrong_crc}, .body = list});
  server.AnswerNext("bucket/list", {.headers = {"ETag: \"v1\"", "Accept-Ranges: bytes"},
                                    .body = list.substr(0, 10),
                                    .content_length = list.size(),
                                    .end = ScriptedAnswer::End::kClose});
  const auto store = OpenStore("s3://bucket/data?endpoint=" + server.url() + "&listing=list",
                               {.ambient_keys = false, .retry = kQuickRetries})
                         .value();
  const auto listing = store->List(Deadline::After(SystemClock(), std::chrono::minutes(1)), {});
  ASSERT_TRUE(listing) << listing.error().message();
  EXPECT_EQ(listing->objects.size(), 2U);
  ASSERT_EQ(server.requests().size(), 5U);
  EXPECT_EQ(server.requests().back().headers.at("range"), "bytes=10-25");
}

TEST(OpenStore, AMissingFolderIsNotFound) {
  EXPECT_EQ(OpenStore("/nonexistent/folder").error().code(), Code::kNotFound);
}

TEST(OpenStore, WithoutAmbientKeysNoneOfThemIsUsed) {
  const TempDir dir;
  dir.Write("token", "a.b.c");
  dir.Write("credentials", "[default]\naws_access_key_id = A\naws_secret_access_key = S\n");
  ScriptedHttpServer server;
  server.Put("bucket/a", "four");
  const std::map<std::string, std::map<std::string, std::string>> cases = {
      {"a web identity",
       {{"AWS_WEB_IDENTITY_TOKEN_FILE", dir.Join("token")}, {"AWS_ROLE_ARN", "arn"}}},
      {"keys",
       {{"AWS_ACCESS_KEY_ID", "A"},
        {"AWS_SECRET_ACCESS_KEY", "S"},
        {"AWS_SESSION_TOKEN", "session"}}},
      {"a profile", {{"AWS_SHARED_CREDENTIALS_FILE", dir.Join("credentials")}}},
      {"a container's service",
       {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url() + "/keys"},
        {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "token"}}},
      {"the machine's service",
       {{"AWS_EC2_METADATA_DISABLED", "false"},
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url()}}},
      {"a customer's key",
       {{"OPTCACHE_SSE_CUSTOMER_KEY", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}}}};
  for (const auto& [what, variables] : cases) {
    const Surroundings surroundings(variables);
    const size_t before = server.requests().size();
    const auto store = OpenStore("s3://bucket/?endpoint=" + server.url(),
                                 {.ambient_keys = false, .retry = kQuickRetries});
    ASSERT_TRUE(store) << what << ": " << store.error().message();
    std::string into;
    EXPECT_TRUE(ReadWaiter().Run(**store, RequestFor("a", into)).status.ok()) << what;
    ASSERT_EQ(server.requests().size(), before + 1) << what;
    const RecordedRequest request = server.requests().back();
    EXPECT_EQ(request.method, "GET") << what;
    for (const char* header :
         {"authorization", "x-amz-security-token", "x-amz-server-side-encryption-customer-key"})
      EXPECT_FALSE(request.headers.contains(header)) << what << ": " << header;
  }
}

TEST(OpenStore, SaysWhetherABucketIsReadWithoutKeys) {
  const Surroundings none;
  const S3Address bucket = BucketAt("s3://bucket", {}).value();
  EXPECT_TRUE(IsReadWithoutKeys(bucket, {}).value());
  EXPECT_FALSE(IsReadWithoutKeys(bucket, {.keys_folder = "/keys"}).value());
  const S3Address paid = BucketAt("s3://bucket?requester-pays=true", {}).value();
  EXPECT_FALSE(IsReadWithoutKeys(paid, {}).value());
  const Surroundings half({{"AWS_ACCESS_KEY_ID", std::string("A")}});
  EXPECT_EQ(IsReadWithoutKeys(bucket, {}).error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(IsReadWithoutKeys(bucket, {.ambient_keys = false}).value());
}

TEST(OpenStore, SaysWhoseCertificatesABucketTrusts) {
  const TempDir dir;
  dir.Write("config", "[default]\nca_bundle = /bundle\n");
  const Surroundings surroundings({{"AWS_CA_BUNDLE", ""}, {"AWS_CONFIG_FILE", dir.Join("config")}});
  EXPECT_EQ(CaFileOfBucket({}).value(), "/bundle");
  EXPECT_EQ(CaFileOfBucket({.ca_file = "/mine"}).value(), "/mine");
  EXPECT_EQ(CaFileOfBucket({.ambient_keys = false}).value(), "");
  dir.Write("config", "neither a section nor a property\n");
  EXPECT_EQ(CaFileOfBucket({}).error().code(), Code::kInvalidArgument);
}

// An address is text: were a token's file smuggled into it, the token would be sent.
TEST(OpenStore, WithoutAmbientKeysAnAddressNamesNoToken) {
  const TempDir dir;
  dir.Write("token", "a.b.c");
  const Surroundings surroundings({{"AWS_WEB_IDENTITY_TOKEN_FILE", dir.Join("token")}});
  for (const std::string& more : {"&token-file=" + dir.Join("token"), std::string("&role-arn=r")}) {
    const auto store =
        OpenStore("s3://bucket/?endpoint=http://127.0.0.1:1" + more, {.ambient_keys = false});
    ASSERT_FALSE(store) << more;
    EXPECT_EQ(store.error().code(), Code::kInvalidArgument);
  }
}

TEST(OpenStore, HedgesNetworkStoresAlone) {
  const TempDir dir;
  const auto folder = MetricsOf(*OpenStore(dir.path()).value());
  const auto server = MetricsOf(*OpenStore("http://127.0.0.1:1").value());
  EXPECT_FALSE(folder.contains("optcache_store_hedges_total"));
  EXPECT_TRUE(server.contains("optcache_store_hedges_total"));
  for (const char* metric : {"optcache_store_retries_left", "optcache_store_breaker_state",
                             "optcache_store_concurrency_limit"}) {
    EXPECT_TRUE(folder.contains(metric)) << metric;
    EXPECT_TRUE(server.contains(metric)) << metric;
  }
}

TEST(OpenStore, AnErrorSaysStoreObjectRangeAttemptAndCause) {
  ScriptedHttpServer server;
  server.AnswerNext("a b", {.status = 503});
  server.AnswerNext("a b", {.status = 404});
  const auto store = OpenStore(server.url(), {.retry = kQuickRetries}).value();
  std::string into;
  EXPECT_EQ(ReadWaiter().Run(*store, RequestFor("a b", into)).status.message(),
            server.url() + ": attempt 2: a b bytes 0-3: HTTP 404: no such object");
}

TEST(OpenStore, AStoreThatIsGoneIsWaitedForUntilTheDeadline) {
  const CircuitBreakerOptions breaker = {
      .failures_min = 2, .failing_min = Duration::zero(), .first_wait = std::chrono::minutes(10)};
  // Nobody listens on port 1.
  RetryOptions retry = kQuickRetries;
  retry.gone_wait = milliseconds(10);
  Status status;
  EXPECT_TRUE(HoldsForSomeDeadline(milliseconds(100), [&](Duration time) {
    const auto store =
        OpenStore("http://127.0.0.1:1", {.retry = retry, .breaker = breaker}).value();
    std::string into;
    for (const char* object : {"a", "b"}) {
      ReadRequest request = RequestFor(object, into);
      request.deadline = Deadline::After(SystemClock(), time);
      status = ReadWaiter().Run(*store, std::move(request)).status;
      const std::string said = fmt::format(
          "{} bytes 0-3: not asked: the store http://127.0.0.1:1 has answered nothing", object);
      if (status.code() != Code::kUnavailable || !status.message().contains(said)) return false;
    }
    return true;
  })) << status.ToString();
}

// The server takes a request and says nothing; the read ends by the second one, and the first is
// given up.
TEST(OpenStore, AReadOfAStalledServerIsHedged) {
  ScriptedHttpServer server;
  server.Put("a", "0123");
  const HedgeOptions eager = {.extra_share = 1,
                              .late_quantile = 0,
                              .late_medians = 0,
                              .late_min = milliseconds(20),
                              .measured_min = 1};
  const auto store = OpenStore(server.url(), {.concurrent_reads_max = 1, .hedges = eager}).value();
  std::string into;
  ASSERT_TRUE(ReadWaiter().Run(*store, RequestFor("a", into)).status.ok());
  server.AnswerNext("a", {.without_answer = true, .end = ScriptedAnswer::End::kStall});
  const ReadOutcome outcome = ReadWaiter().Run(*store, RequestFor("a", into));
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  EXPECT_EQ(into, "0123");
  EXPECT_EQ(outcome.attempts, 1U);
  EXPECT_TRUE(server.WaitForRequests(3));
  EXPECT_EQ(server.requests().size(), 3U);
}

TEST(OpenStore, AReadGoesOnWhereItsConnectionBroke) {
  ScriptedHttpServer server;
  server.Put("a", "0123", "\"v1\"");
  server.AnswerNext("a", {.headers = {"ETag: \"v1\"", "Accept-Ranges: bytes"},
                          .body = "01",
                          .content_length = 4,
                          .end = ScriptedAnswer::End::kClose});
  const auto store = OpenStore(server.url(), {.retry = kQuickRetries}).value();
  std::string into;
  ReadRequest request = RequestFor("a", into);
  request.validator.etag = "\"v1\"";
  const ReadOutcome outcome = ReadWaiter().Run(*store, std::move(request));
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  EXPECT_EQ(into, "0123");
  ASSERT_EQ(server.requests().size(), 2U);
  EXPECT_FALSE(server.requests()[0].headers.contains("range"));
  EXPECT_EQ(server.requests()[1].headers.at("range"), "bytes=2-3");
  EXPECT_EQ(server.requests()[1].headers.at("if-match"), "\"v1\"");
}

// A bucket of one object, "0123", whose answers break.
class BreakingBucket {
 public:
  BreakingBucket() { server_.Put("bucket/a", "0123", "\"v1\""); }

  // The next request for all of it gets this much, and checksums of all.
  void Break(const std::string& body) {
    server_.AnswerNext(
        "bucket/a",
        {.headers = {"ETag: \"v1\"", "Accept-Ranges: bytes",
                     "x-amz-checksum-crc64nvme: UShmv2nzOhY=",
                     "x-amz-checksum-sha256: G+LkUrRteg2WVrux92joJI66G3W67WX12Z6vqUiJmmo="},
         .body = body,
         .content_length = 4,
         .end = ScriptedAnswer::End::kClose});
  }
  // The next request for bytes 2 to 3 gets the first of them.
  void BreakRest(const std::string& body) {
    server_.AnswerNext("bucket/a", {.status = 206,
                                    .headers = {"ETag: \"v1\"", "Content-Range: bytes 2-3/4"},
                                    .body = body,
                                    .content_length = 2,
                                    .end = ScriptedAnswer::End::kClose});
  }
  // What is read of it, whatever is needed for that.
  std::string Read() {
    const auto store = OpenStore("s3://bucket/?endpoint=" + server_.url(),
                                 {.ambient_keys = false, .retry = kQuickRetries})
                           .value();
    std::string into;
    ReadRequest request = RequestFor("a", into);
    request.validator.etag = "\"v1\"";
    const ReadOutcome outcome = ReadWaiter().Run(*store, std::move(request));
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    return into;
  }
  // Of each request, "" for all of it.
  std::vector<std::string> ranges() const {
    std::vector<std::string> asked;
    for (const RecordedRequest& request : server_.requests()) {
      const auto range = request.headers.find("range");
      asked.push_back(range == request.headers.end() ? "" : range->second);
    }
    return asked;
  }

 private:
  ScriptedHttpServer server_;
};

TEST(OpenStore, AReadThatGoesOnIsComparedWithTheChecksumOfTheWhole) {
  BreakingBucket bucket;
  bucket.Break("0x");
  EXPECT_EQ(bucket.Read(), "0123");
  EXPECT_THAT(bucket.ranges(), ElementsAre("", "bytes=2-3", "")) << "it begins again";
}

TEST(OpenStore, AReadThatGoesOnTwiceIsComparedToo) {
  BreakingBucket bucket;
  bucket.Break("01");
  bucket.BreakRest("x");
  EXPECT_EQ(bucket.Read(), "0123");
  EXPECT_THAT(bucket.ranges(), ElementsAre("", "bytes=2-3", "bytes=3-3", ""));
}

TEST(OpenStore, WhatCameRightIsNotReadAgain) {
  BreakingBucket bucket;
  bucket.Break("01");
  bucket.BreakRest("2");
  EXPECT_EQ(bucket.Read(), "0123");
  EXPECT_THAT(bucket.ranges(), ElementsAre("", "bytes=2-3", "bytes=3-3"));
}

TEST(OpenStore, AnObjectWithAnotherChecksumThanItsStoreTellsIsRefused) {
  ScriptedHttpServer server;
  const std::string right = "G+LkUrRteg2WVrux92joJI66G3W67WX12Z6vqUiJmmo=";  // of "0123"
  for (int i = 0; i < 2; ++i)
    server.AnswerNext("bucket/a", {.headers = {"x-amz-checksum-sha256: " + right}, .body = "0124"});
  const auto store = OpenStore("s3://bucket/?endpoint=" + server.url(),
                               {.ambient_keys = false, .retry = kQuickRetries})
                         .value();
  std::string into;
  const ReadOutcome outcome = ReadWaiter().Run(*store, RequestFor("a", into));
  EXPECT_EQ(outcome.status.code(), Code::kDataLoss);
  EXPECT_THAT(outcome.status.message(),
              testing::AllOf(testing::StartsWith("s3://bucket/: attempt 2: a bytes 0-3: "),
                             HasSubstr("the SHA-256 of what came is "),
                             HasSubstr("the store says " + right +
                                       "; nor was it at a second read: "
                                       "put the object into the store again")));
  ASSERT_EQ(server.requests().size(), 2U);
  EXPECT_FALSE(server.requests()[0].headers.contains("cache-control"));
  EXPECT_EQ(server.requests()[1].headers.at("cache-control"), "no-cache");
}

// The store answers, so it is neither gone nor overloaded: its readers wait for keys.
TEST(OpenStore, ExpiredKeysAreNoOutage) {
  ScriptedHttpServer server;
  server.Put("bucket/a", "0123");
  for (int i = 0; i < 6; ++i) {
    server.AnswerNext("bucket/a",
                      {.status = 400, .body = "<Error><Code>ExpiredToken</Code></Error>"});
  }
  const CircuitBreakerOptions breaker = {
      .failures_min = 2, .failing_min = Duration::zero(), .first_wait = std::chrono::minutes(10)};
  const auto store = OpenStore("s3://bucket/?endpoint=" + server.url(),
                               {.ambient_keys = false, .retry = kQuickRetries, .breaker = breaker})
                         .value();
  std::string into;
  const ReadOutcome outcome = ReadWaiter().Run(*store, RequestFor("a", into));
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  EXPECT_EQ(outcome.attempts, 7U);
  EXPECT_EQ(store->Health().state, StoreHealth::State::kAnswers);
  std::map<std::string, double> counters;
  store->VisitCounters([&](MetricKind, std::string_view name, const MetricLabels&, double value) {
    counters[std::string(name)] = value;
  });
  EXPECT_EQ(counters.at("optcache_store_concurrency_decreases_total"), 0);
}

// The layers do not begin it again: its pages are asked for one by one.
TEST(OpenStore, AWalkOfFoldersGoesOnWhereAPageFailed) {
  ScriptedHttpServer server;
  server.Put("", "<a href='a/'>a</a><a href='b/'>b</a>");
  server.Put("a/", "<a href='1.jpg'>1</a>");
  server.Put("b/", "<a href='2.jpg'>2</a>");
  server.AnswerNext("b/", {.status = 503});
  const auto store =
      OpenStore(server.url(), {.listing = "autoindex", .retry = kQuickRetries}).value();
  const auto listing = store->List(Deadline::After(SystemClock(), std::chrono::minutes(1)), {});
  ASSERT_TRUE(listing) << listing.error().message();
  EXPECT_EQ(listing->objects.size(), 2U);
  std::map<std::string, int> asked;
  for (const RecordedRequest& request : server.requests())
    ++asked[request.target];
  EXPECT_THAT(asked, ElementsAre(Pair("/", 1), Pair("/a/", 1), Pair("/b/", 2)));
}

TEST(OpenStore, RetryAfterHoldsBackAllReads) {
  ScriptedHttpServer server;
  server.Put("b", "0123");
  server.AnswerNext("a", {.status = 503, .headers = {"Retry-After: 1"}});
  RetryOptions once = kQuickRetries;
  once.patience = Duration::zero();
  const auto store = OpenStore(server.url(), {.retry = once}).value();
  std::string into;
  const MonotonicTime began = SystemClock().Now();
  EXPECT_FALSE(ReadWaiter().Run(*store, RequestFor("a", into)).status.ok());
  EXPECT_TRUE(ReadWaiter().Run(*store, RequestFor("b", into)).status.ok());
  EXPECT_GE(SystemClock().Now() - began, std::chrono::seconds(1));
}

}  // namespace
}  // namespace optcache::storage
