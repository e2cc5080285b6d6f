#include "storage/http_store.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/read_waiter.h"
#include "support/scripted_http_server.h"
#include "support/temp_dir.h"

namespace optcache::storage {
namespace {

using testing::HasSubstr;
using End = ScriptedAnswer::End;

class HttpStoreTest : public testing::Test {
 protected:
  std::unique_ptr<HttpStore> Open(HttpStoreOptions options = {}) {
    options.base_url = server_.url();
    return HttpStore::Open(std::move(options)).value();
  }
  static Deadline Soon() { return Deadline::After(SystemClock(), std::chrono::minutes(1)); }
  // A request for the whole object that fills into_.
  ReadRequest Whole(const std::string& object, size_t size, std::string etag = "") {
    into_.assign(size, '.');
    return {.object = object,
            .offset = 0,
            .destination = std::as_writable_bytes(std::span(into_)),
            .object_size = size,
            .validator = {.modified_ns = 0, .etag = std::move(etag)},
            .deadline = Soon()};
  }
  ReadRequest Part(const std::string& object, ByteCount offset, size_t length, ByteCount size) {
    ReadRequest request = Whole(object, length);
    request.offset = offset;
    request.object_size = size;
    return request;
  }
  ReadOutcome Run(ReadRequest request) { return ReadWaiter().Run(*store_, std::move(request)); }

  ScriptedHttpServer server_;
  std::string into_;
  std::unique_ptr<HttpStore> store_ = Open();
};

TEST_F(HttpStoreTest, ReadsWholeObjectsWithoutARange) {
  server_.Put("a", "0123456789", "\"v1\"");
  EXPECT_TRUE(Run(Whole("a", 10, "\"v1\"")).status.ok());
  EXPECT_EQ(into_, "0123456789");
  const auto headers = server_.requests().at(0).headers;
  EXPECT_EQ(headers.at("if-match"), "\"v1\"");
  EXPECT_FALSE(headers.contains("range"));
}

TEST_F(HttpStoreTest, ReadsPastCachesWhenItIsToldTo) {
  server_.Put("a", "0123456789");
  EXPECT_TRUE(Run(Whole("a", 10)).status.ok());
  ReadRequest again = Part("a", 3, 4, 10);
  again.fresh = true;
  EXPECT_TRUE(Run(std::move(again)).status.ok());
  EXPECT_FALSE(server_.requests().at(0).headers.contains("cache-control"));
  EXPECT_EQ(server_.requests().at(1).headers.at("cache-control"), "no-cache");
}

TEST_F(HttpStoreTest, ReadsRanges) {
  server_.Put("a", "0123456789");
  EXPECT_TRUE(Run(Part("a", 3, 4, 10)).status.ok());
  EXPECT_EQ(into_, "3456");
  EXPECT_EQ(server_.requests().at(0).headers.at("range"), "bytes=3-6");
}

TEST_F(HttpStoreTest, FillsSeveralPlacesWithOneRequest) {
  server_.Put("a", "0123456789");
  std::string second(3, '.');
  ReadRequest request = Part("a", 1, 2, 10);
  request.destination.Skip(3);
  request.destination.Add(std::as_writable_bytes(std::span(second)));
  EXPECT_TRUE(Run(std::move(request)).status.ok());
  EXPECT_EQ(into_, "12");
  EXPECT_EQ(second, "678");
  ASSERT_EQ(server_.requests().size(), 1);
  EXPECT_EQ(server_.requests().at(0).headers.at("range"), "bytes=1-8");
}

TEST_F(HttpStoreTest, ReadsLargeAndEmptyObjects) {
  std::string large(3'000'000, '\0');
  for (size_t i = 0; i < large.size(); ++i)
    large[i] = static_cast<char>(i * 7 + i / 1000);
  server_.Put("large", large);
  server_.Put("empty", "");
  EXPECT_TRUE(Run(Whole("large", large.size())).status.ok());
  EXPECT_TRUE(into_ == large);
  EXPECT_TRUE(Run(Whole("empty", 0)).status.ok());
}

TEST_F(HttpStoreTest, KeepsItsConnection) {
  server_.Put("a", "x");
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(Run(Whole("a", 1)).status.ok());
  EXPECT_EQ(server_.connections(), 1);
}

TEST_F(HttpStoreTest, EncodesWhatAnAddressCannotHold) {
  const std::string name = "a b+c?d#e%20f\"g'h/\xc3\xa9\xff&=;:@.jpg";
  server_.Put(name, "x");
  EXPECT_TRUE(Run(Whole(name, 1)).status.ok());
  EXPECT_EQ(server_.requests().at(0).target,
            "/a%20b%2Bc%3Fd%23e%2520f%22g%27h/%C3%A9%FF%26%3D%3B%3A%40.jpg");
}

TEST_F(HttpStoreTest, StatusesBecomeCodes) {
  struct Case {
    int status;
    Code code;
  };
  for (const Case c :
       {Case{400, Code::kInvalidArgument}, Case{401, Code::kPermissionDenied},
        Case{403, Code::kPermissionDenied}, Case{404, Code::kNotFound}, Case{410, Code::kNotFound},
        Case{408, Code::kUnavailable}, Case{412, Code::kConflict}, Case{416, Code::kConflict},
        Case{429, Code::kUnavailable}, Case{500, Code::kUnavailable},
        Case{501, Code::kInvalidArgument}, Case{503, Code::kUnavailable},
        Case{505, Code::kInvalidArgument}}) {
    server_.AnswerNext("a", {.status = c.status, .body = "why not"});
    const ReadOutcome outcome = Run(Whole("a", 7));
    EXPECT_EQ(outcome.status.code(), c.code) << c.status;
    EXPECT_THAT(outcome.status.message(), HasSubstr(fmt::format("HTTP {}", c.status)));
    EXPECT_THAT(outcome.status.message(), HasSubstr("a bytes 0-6"));
    EXPECT_EQ(into_, ".......") << "the body of an error is not the object";
  }
}

TEST_F(HttpStoreTest, CarriesRetryAfter) {
  server_.AnswerNext("a", {.status = 503, .headers = {"Retry-After: 7"}});
  EXPECT_EQ(Run(Whole("a", 1)).retry_after, std::chrono::seconds(7));
  server_.AnswerNext("a", {.status = 503});
  EXPECT_EQ(Run(Whole("a", 1)).retry_after, Duration::zero());
}

TEST_F(HttpStoreTest, AnotherVersionIsAConflict) {
  server_.Put("a", "0123456789", "\"v2\"");
  EXPECT_EQ(Run(Whole("a", 10, "\"v1\"")).status.code(), Code::kConflict);
  // A server that does not know If-Match tells by the answer's ETag, or by its length alone.
  server_.AnswerNext("a", {.headers = {"ETag: \"v2\""}, .body = "0123456789"});
  EXPECT_EQ(Run(Whole("a", 10, "\"v1\"")).status.code(), Code::kConflict);
  EXPECT_EQ(Run(Whole("a", 9)).status.code(), Code::kConflict);
  EXPECT_EQ(Run(Part("a", 0, 5, 11)).status.code(), Code::kConflict);
}

TEST_F(HttpStoreTest, TellsWhatCameOfTheListedVersionBeforeTheEnd) {
  const auto cut = [](std::vector<std::string> headers) {
    return ScriptedAnswer{
        .headers = std::move(headers), .body = "0123", .content_length = 10, .end = End::kClose};
  };
  const std::string ranges = "Accept-Ranges: bytes";
  server_.AnswerNext("a", cut({"ETag: \"v1\"", ranges}));
  ReadOutcome outcome = Run(Whole("a", 10, "\"v1\""));
  EXPECT_EQ(outcome.status.code(), Code::kDataLoss);
  EXPECT_EQ(outcome.received, 4U);
  EXPECT_EQ(outcome.filled, 4U);
  server_.AnswerNext("a", cut({"ETag: \"v1\""}));
  EXPECT_EQ(Run(Whole("a", 10, "\"v1\"")).filled, 0U) << "the rest cannot be asked for";
  server_.AnswerNext("a", cut({ranges}));
  outcome = Run(Whole("a", 10, "\"v1\""));
  EXPECT_EQ(outcome.received, 4U);
  EXPECT_EQ(outcome.filled, 0U) << "which version it is, is not known";
  server_.AnswerNext("a", cut({"ETag: W/\"v1\"", ranges}));
  EXPECT_EQ(Run(Whole("a", 10, "W/\"v1\"")).filled, 0U) << "a weak ETag is not of the bytes";
  server_.AnswerNext("a", {.headers = {"ETag: \"v1\"", ranges}, .body = "0123"});
  EXPECT_EQ(Run(Whole("a", 10, "\"v1\"")).filled, 0U) << "an answer for another length";
}

TEST_F(HttpStoreTest, TimesThatNobodyCanMeanAreUnknown) {
  server_.AnswerNext(
      "a", {.headers = {"Last-Modified: Fri, 31 Dec 9999 23:59:59 GMT"}, .body = "0123456789"});
  EXPECT_EQ(store_->Stat("a", Soon()).value().validator.modified_ns, 0);
}

TEST_F(HttpStoreTest, WhatIsNoETagIsNotAskedForAndNotTold) {
  EXPECT_EQ(ReadWaiter().Run(*store_, Whole("a", 10, "\"v1\"\r\nX-Injected: yes")).status.code(),
            Code::kInvalidArgument);
  EXPECT_TRUE(server_.requests().empty());
  server_.Put("a", "0123456789", "v1");
  EXPECT_EQ(store_->Stat("a", Soon()).value().validator.etag, "");
}

TEST_F(HttpStoreTest, WeakETagsAreComparedHereAsServersWouldNot) {
  server_.Put("a", "x", "W/\"v1\"");
  EXPECT_TRUE(Run(Whole("a", 1, "W/\"v1\"")).status.ok());
  EXPECT_FALSE(server_.requests().at(0).headers.contains("if-match"));
  EXPECT_EQ(Run(Whole("a", 1, "W/\"v0\"")).status.code(), Code::kConflict);
}

TEST_F(HttpStoreTest, ATruncatedAnswerIsDataLoss) {
  server_.AnswerNext("a", {.body = "0123", .content_length = 10, .end = End::kClose});
  EXPECT_EQ(Run(Whole("a", 10)).status.code(), Code::kDataLoss);
  server_.AnswerNext("a", {.body = "0123", .without_length = true, .end = End::kClose});
  const ReadOutcome outcome = Run(Whole("a", 10));
  EXPECT_EQ(outcome.status.code(), Code::kDataLoss);
  EXPECT_THAT(outcome.status.message(), HasSubstr("only 4 bytes came"));
}

TEST_F(HttpStoreTest, AWrongLengthOfTheRightVersionIsDataLoss) {
  server_.AnswerNext("a", {.headers = {"ETag: \"v1\""}, .body = "0123"});
  EXPECT_EQ(Run(Whole("a", 10, "\"v1\"")).status.code(), Code::kDataLoss);
}

TEST_F(HttpStoreTest, MoreBytesThanAskedForAreDataLossAndGoNowhere) {
  server_.AnswerNext("a", {.body = "0123456789", .without_length = true, .end = End::kClose});
  EXPECT_EQ(Run(Whole("a", 4)).status.code(), Code::kDataLoss);
}

TEST_F(HttpStoreTest, AnotherRangeIsDataLossAndNoRangeIsRefused) {
  server_.AnswerNext("a",
                     {.status = 206, .headers = {"Content-Range: bytes 0-3/10"}, .body = "0123"});
  EXPECT_EQ(Run(Part("a", 3, 4, 10)).status.code(), Code::kDataLoss);
  server_.Put("a", "0123456789");
  server_.set_ignores_ranges(true);
  const ReadOutcome outcome = Run(Part("a", 3, 4, 10));
  EXPECT_EQ(outcome.status.code(), Code::kInvalidArgument);
  EXPECT_THAT(outcome.status.message(), HasSubstr("ignores ranges"));
}

TEST_F(HttpStoreTest, AResetIsUnavailable) {
  server_.AnswerNext("a", {.body = "0123", .content_length = 10, .end = End::kReset});
  const Code within_body = Run(Whole("a", 10)).status.code();
  EXPECT_TRUE(within_body == Code::kUnavailable || within_body == Code::kDataLoss);
  server_.AnswerNext("b", {.without_answer = true, .end = End::kReset});
  EXPECT_EQ(Run(Whole("b", 10)).status.code(), Code::kUnavailable);
}

TEST_F(HttpStoreTest, NobodyListeningIsUnavailable) {
  std::string url;
  {
    const ScriptedHttpServer gone;
    url = gone.url();
  }
  store_ = HttpStore::Open({.base_url = url}).value();
  EXPECT_EQ(Run(Whole("a", 1)).status.code(), Code::kUnavailable);
}

TEST_F(HttpStoreTest, AStalledBodyEndsAtTheDeadline) {
  server_.AnswerNext("a", {.body = "0123", .content_length = 10, .end = End::kStall});
  ReadRequest request = Whole("a", 10);
  request.deadline = Deadline::After(SystemClock(), std::chrono::milliseconds(50));
  EXPECT_EQ(Run(std::move(request)).status.code(), Code::kDeadlineExceeded);
}

TEST_F(HttpStoreTest, FollowsRedirections) {
  server_.Put("there", "0123");
  server_.AnswerNext("here", {.status = 302, .headers = {"Location: /there"}, .body = "moved"});
  EXPECT_TRUE(Run(Whole("here", 4)).status.ok());
  EXPECT_EQ(into_, "0123");
  for (int i = 0; i < 10; ++i) {
    server_.AnswerNext("loop", {.status = 302, .headers = {"Location: /loop"}});
  }
  EXPECT_EQ(Run(Whole("loop", 4)).status.code(), Code::kInvalidArgument);
}

TEST_F(HttpStoreTest, KeysGoToTheirOwnOriginAlone) {
  const TempDir keys;
  keys.Write("token", "abc");
  store_ = Open({.keys_folder = keys.path()});
  ScriptedHttpServer stranger;
  stranger.Put("there", "0123");
  server_.Put("there", "0123");
  const auto moved = [](const std::string& to) {
    return ScriptedAnswer{.status = 302, .headers = {"Location: " + to}};
  };
  server_.AnswerNext("near", moved("/there"));
  server_.AnswerNext("far", moved(stranger.url() + "/there"));
  EXPECT_TRUE(Run(Whole("near", 4)).status.ok());
  EXPECT_TRUE(Run(Whole("far", 4)).status.ok());
  EXPECT_TRUE(store_->Stat("there", Soon()));
  ASSERT_EQ(server_.requests().size(), 4U);
  for (const RecordedRequest& request : server_.requests())
    EXPECT_EQ(request.headers.at("authorization"), "Bearer abc") << request.target;
  ASSERT_EQ(stranger.requests().size(), 1U);
  EXPECT_FALSE(stranger.requests()[0].headers.contains("authorization"));
}

TEST_F(HttpStoreTest, KeysThatAreMissingOrWrongAreASentence) {
  const TempDir keys;
  store_ = Open({.keys_folder = keys.path()});
  const auto listing = store_->List(Soon(), {});
  ASSERT_FALSE(listing);
  EXPECT_EQ(listing.error().code(), Code::kPermissionDenied);
  EXPECT_THAT(std::string(listing.error().message()), HasSubstr("there is no token"));
  EXPECT_EQ(store_->Read(Whole("a", 4), [](ReadOutcome) {}).code(), Code::kPermissionDenied);
  EXPECT_TRUE(server_.requests().empty());
  server_.AnswerNext("a", {.status = 401});
  EXPECT_THAT(std::string(Open()->Stat("a", Soon()).error().message()),
              HasSubstr("the server wants a key, or another one"));
}

// A store whose one connection is held by an answer that does not come.
class StalledHttpStoreTest : public HttpStoreTest {
 protected:
  void SetUp() override {
    store_ = Open({.concurrent_reads_max = 1, .waiting_reads_max = 2});
    server_.AnswerNext("stalls", {.without_answer = true, .end = End::kStall});
    first_.Start(*store_, Whole("stalls", 1));
    ASSERT_TRUE(server_.WaitForRequests(1));
  }
  void TearDown() override { store_->Shutdown(); }  // first_ goes before the store does

  ReadWaiter first_;
};

TEST_F(StalledHttpStoreTest, WaitingReadsEndAtTheirDeadline) {
  ReadRequest request = Whole("a", 1);
  request.deadline = Deadline::After(SystemClock(), std::chrono::milliseconds(1));
  EXPECT_EQ(Run(std::move(request)).status.code(), Code::kDeadlineExceeded);
}

TEST_F(StalledHttpStoreTest, RefusesReadsWhenTooManyWait) {
  ReadWaiter second;
  ReadWaiter third;
  second.Start(*store_, Whole("a", 1));
  third.Start(*store_, Whole("a", 1));
  EXPECT_EQ(Run(Whole("a", 1)).status.code(), Code::kResourceExhausted);
  store_->Shutdown();  // the waiters must outlive their reads
}

TEST_F(StalledHttpStoreTest, ShutdownCancelsAllReadsOnce) {
  ReadWaiter second;
  second.Start(*store_, Whole("a", 1));
  store_->Shutdown();
  EXPECT_EQ(first_.Wait().status.code(), Code::kCancelled);
  EXPECT_EQ(second.Wait().status.code(), Code::kCancelled);
  EXPECT_EQ(first_.calls() + second.calls(), 2);
  EXPECT_EQ(Run(Whole("a", 1)).status.code(), Code::kCancelled);
}

TEST_F(HttpStoreTest, ManyReadsAtOnceUseAtMostTheLimitOfConnections) {
  store_ = Open({.concurrent_reads_max = 4, .waiting_reads_max = 1000});
  constexpr size_t kReads = 200;
  std::vector<std::string> into(kReads, std::string(4, '.'));
  std::vector<ReadWaiter> waiters(kReads);
  for (size_t i = 0; i < kReads; ++i)
    server_.Put(fmt::format("o{}", i), fmt::format("{:04}", i));
  for (size_t i = 0; i < kReads; ++i) {
    ReadRequest request = Whole(fmt::format("o{}", i), 4);
    request.destination = std::as_writable_bytes(std::span(into[i]));
    waiters[i].Start(*store_, std::move(request));
  }
  for (size_t i = 0; i < kReads; ++i) {
    EXPECT_TRUE(waiters[i].Wait().status.ok());
    EXPECT_EQ(into[i], fmt::format("{:04}", i));
  }
  EXPECT_LE(server_.connections(), 4);
}

TEST_F(HttpStoreTest, StatsByHead) {
  server_.Put("a", "0123", "\"v1\"");
  const ObjectInfo info = store_->Stat("a", Soon()).value();
  EXPECT_EQ(info.size, 4U);
  EXPECT_EQ(info.validator.etag, "\"v1\"");
  EXPECT_EQ(server_.requests().at(0).method, "HEAD");
  EXPECT_EQ(store_->Stat("gone", Soon()).error().code(), Code::kNotFound);
  server_.AnswerNext("unsized", {.without_length = true});
  EXPECT_EQ(store_->Stat("unsized", Soon()).error().code(), Code::kInvalidArgument);
}

TEST_F(HttpStoreTest, UnderstandsLastModified) {
  server_.AnswerNext("a", {.headers = {"Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT"}});
  EXPECT_EQ(store_->Stat("a", Soon())->validator.modified_ns, 1'700'000'000'000'000'000);
}

TEST_F(HttpStoreTest, SaysWhatToDoWithoutAListing) {
  const auto listing = store_->List(Soon(), {});
  ASSERT_FALSE(listing);
  EXPECT_EQ(listing.error().code(), Code::kNotFound);
  EXPECT_TRUE(listing.error().message().ends_with(
      "check the address of the source. If it is right, put a list of its samples there, a path a "
      "line, or give listing: autoindex where the server shows its folders"));
}

TEST_F(HttpStoreTest, ListsByItsListing) {
  server_.Put("index.txt", "b/1.jpg\t5\t\"e\"\na/2.jpg\n");
  const ObjectListing listing = store_->List(Soon(), {}).value();
  ASSERT_EQ(listing.objects.size(), 2U);
  EXPECT_EQ(listing.objects[0].info->size, 5U);
  EXPECT_FALSE(listing.objects[1].info.has_value());
}

TEST_F(HttpStoreTest, AMissingOrWrongListingIsNamed) {
  const auto missing = store_->List(Soon(), {});
  EXPECT_EQ(missing.error().code(), Code::kNotFound);
  EXPECT_THAT(missing.error().message(), HasSubstr("/index.txt"));
  server_.Put("index.txt", "a\n../b\n");
  EXPECT_THAT(store_->List(Soon(), {}).error().message(), HasSubstr("line 2"));
}

TEST_F(HttpStoreTest, AListingBeyondTheLimitIsRefusedWithIt) {
  store_ = Open({.listing_bytes_max = 8});
  server_.Put("index.txt", "a/1.jpg\n");
  EXPECT_EQ(store_->List(Soon(), {})->objects.size(), 1U);
  server_.Put("index.txt", "a/1.jpg\nb");
  const auto listing = store_->List(Soon(), {});
  EXPECT_EQ(listing.error().code(), Code::kInvalidArgument) << "asking again is no help";
  EXPECT_THAT(listing.error().message(),
              HasSubstr("/index.txt: it is longer than the limit of 8 B"));
}

TEST(HttpStore, RefusesAddressesItCannotKeepSecretOrUse) {
  for (const std::string url : {"ftp://h/", "http://", "http:///x", "host/x", "http://h/?q",
                                "http://h/#f", "http://h/a b"}) {
    EXPECT_EQ(HttpStore::Open({.base_url = url}).error().code(), Code::kInvalidArgument) << url;
  }
  const auto with_password = HttpStore::Open({.base_url = "http://user:secret@host/"});
  EXPECT_EQ(with_password.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(with_password.error().message().find("secret"), std::string::npos);
}

}  // namespace
}  // namespace optcache::storage
