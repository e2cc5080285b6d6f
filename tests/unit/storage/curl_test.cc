#include "storage/internal/curl.h"

#include <atomic>
#include <future>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/scripted_http_server.h"

namespace optcache::storage::internal {
namespace {

class HttpClientTest : public testing::Test {
 protected:
  HttpRequest Get(const std::string& path) {
    body_.clear();
    return {.method = HttpRequest::Method::kGet,
            .url = server_.url() + path,
            .headers = {"X-Test: yes"},
            .take_body =
                [this](int /*http_status*/, ByteSpan piece) {
                  body_ += AsText(piece);
                  return body_.size() <= 4;
                },
            .deadline = Deadline::After(SystemClock(), std::chrono::minutes(1))};
  }
  std::future<HttpResponse> Send(HttpRequest request) {
    std::promise<HttpResponse> promise;
    std::future<HttpResponse> future = promise.get_future();
    const Status accepted = client_.Send(
        std::move(request), [promise = std::move(promise)](HttpResponse response) mutable {
          promise.set_value(std::move(response));
        });
    EXPECT_TRUE(accepted.ok()) << accepted.ToString();
    return future;
  }

  ScriptedHttpServer server_;
  std::string body_;
  HttpClient client_{{.concurrent_max = 1}, SystemClock()};
};

TEST_F(HttpClientTest, GivesStatusHeadersAndBody) {
  server_.AnswerNext("a", {.status = 206,
                           .headers = {"ETag: \"v\"", "Content-Range: bytes 0-3/9",
                                       "Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT"},
                           .body = "0123"});
  const HttpResponse response = Send(Get("/a")).get();
  EXPECT_TRUE(response.transport.ok());
  EXPECT_EQ(response.http_status, 206);
  EXPECT_EQ(response.content_length, 4U);
  EXPECT_EQ(response.etag, "\"v\"");
  EXPECT_EQ(response.content_range, "bytes 0-3/9");
  EXPECT_EQ(response.last_modified_s, 1'700'000'000);
  EXPECT_EQ(body_, "0123");
  EXPECT_EQ(server_.requests().at(0).headers.at("x-test"), "yes");
}

TEST_F(HttpClientTest, TellsTheHeadBeforeTheBodyAndOnce) {
  const auto heads_of = [&](ScriptedAnswer answer) {
    server_.AnswerNext("a", std::move(answer));
    HttpRequest request = Get("/a");
    request.wanted_headers = {"X-Told"};
    std::vector<std::string> heads;
    request.take_head = [&](const HttpResponse& head) {
      heads.push_back(fmt::format("{} {} before {} bytes", head.http_status,
                                  head.headers.at("X-Told"), body_.size()));
    };
    EXPECT_TRUE(Send(std::move(request)).get().transport.ok());
    return heads;
  };
  EXPECT_EQ(heads_of({.headers = {"X-Told: yes"}, .body = "0123"}),
            std::vector<std::string>{"200 yes before 0 bytes"});
  EXPECT_TRUE(heads_of({.status = 404, .headers = {"X-Told: yes"}, .body = "no"}).empty());
  EXPECT_TRUE(heads_of({.headers = {"X-Told: yes"}}).empty()) << "there is no body";
}

TEST_F(HttpClientTest, EndsATransferWhoseBodyIsNotWanted) {
  server_.Put("a", "01234");
  EXPECT_EQ(Send(Get("/a")).get().transport.code(), Code::kDataLoss);
  server_.Put("b", "0123");
  EXPECT_TRUE(Send(Get("/b")).get().transport.ok()) << "the handle is as good as new";
}

// One header would be two, or the end of a request and the beginning of another.
TEST_F(HttpClientTest, RefusesWhatEndsALine) {
  using namespace std::string_literals;
  const auto refused = [&](HttpRequest request) {
    const Status status = client_.Send(std::move(request), [](const HttpResponse&) { FAIL(); });
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(status.message().find("secret"), std::string::npos) << status.message();
    return status.message();
  };
  for (const std::string& end : {"\r"s, "\n"s, "\r\nX-Injected: yes"s, "\0"s}) {
    HttpRequest request = Get("/a");
    request.headers.push_back("If-Match: secret" + end);
    EXPECT_NE(refused(std::move(request)).find("the header If-Match "), std::string::npos);
    refused(Get("/a" + end));
  }
  server_.Put("b", "0123");
  EXPECT_TRUE(Send(Get("/b")).get().transport.ok());
  EXPECT_EQ(server_.requests().size(), 1U);
}

TEST_F(HttpClientTest, DoesNotReadAllOfALongError) {
  server_.AnswerNext("a", {.status = 500, .body = std::string(10 << 20, 'e')});
  const HttpResponse response = Send(Get("/a")).get();
  EXPECT_EQ(response.http_status, 500);
  EXPECT_EQ(body_, "");
}

TEST_F(HttpClientTest, EndsATransferFromWhichNothingComes) {
  server_.AnswerNext("a", {.body = "0", .content_length = 4, .end = ScriptedAnswer::End::kStall});
  HttpRequest request = Get("/a");
  request.silence_max = std::chrono::seconds(1);
  const HttpResponse response = Send(std::move(request)).get();
  EXPECT_EQ(response.transport.code(), Code::kUnavailable);
  EXPECT_NE(response.transport.message().find("too slow"), std::string::npos)
      << response.transport.message();
}

TEST_F(HttpClientTest, ALongRetryAfterDoesNotOverflow) {
  server_.AnswerNext("a", {.status = 503, .headers = {"Retry-After: 9223372036854775807"}});
  EXPECT_EQ(Send(Get("/a")).get().retry_after, std::chrono::hours(24));
}

TEST_F(HttpClientTest, EndsATransferThatHasBecomeUnwanted) {
  server_.AnswerNext("a", {.without_answer = true, .end = ScriptedAnswer::End::kStall});
  std::atomic<bool> unwanted = false;
  HttpRequest request = Get("/a");
  request.unwanted = [&] { return unwanted.load(); };
  std::future<HttpResponse> stalled = Send(std::move(request));
  ASSERT_TRUE(server_.WaitForRequests(1));
  unwanted = true;
  EXPECT_EQ(stalled.get().transport.code(), Code::kCancelled);
  server_.Put("b", "0123");
  EXPECT_TRUE(Send(Get("/b")).get().transport.ok()) << "the handle is as good as new";
}

TEST_F(HttpClientTest, CountsWhatWaitsAndRunsUntilShutdown) {
  server_.AnswerNext("a", {.without_answer = true, .end = ScriptedAnswer::End::kStall});
  std::future<HttpResponse> runs = Send(Get("/a"));
  ASSERT_TRUE(server_.WaitForRequests(1));
  std::future<HttpResponse> waits = Send(Get("/b"));
  EXPECT_EQ(client_.counts().running, 1U);
  EXPECT_EQ(client_.counts().waiting, 1U);
  client_.Shutdown();
  EXPECT_EQ(runs.get().transport.code(), Code::kCancelled);
  EXPECT_EQ(waits.get().transport.code(), Code::kCancelled);
  EXPECT_EQ(client_.counts().waiting, 0U);
  EXPECT_EQ(client_.Send(Get("/c"), [](const HttpResponse&) { FAIL(); }).code(), Code::kCancelled);
}

}  // namespace
}  // namespace optcache::storage::internal
