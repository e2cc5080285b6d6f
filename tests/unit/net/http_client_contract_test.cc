// What every HttpClient does, by TCP and by Unix sockets.

#include <gtest/gtest.h>

#include "net/http_client.h"
#include "unit/net/http_client_fixture.h"

namespace optcache::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class HttpClientContract : public HttpClientFixture, public testing::WithParamInterface<bool> {
 protected:
  HttpClientContract() : HttpClientFixture(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(By, HttpClientContract, testing::Bool(), [](const auto& way) {
  return way.param ? std::string("UnixSocket") : std::string("Tcp");
});

TEST_P(HttpClientContract, SendsWhatItIsGivenAndGivesBackWhatCame) {
  handler = [](const HttpRequest&, const HttpResponder& respond) {
    respond({.status = 201, .headers = {{"X-Version", "7"}}, .body = "made"});
  };
  const auto response = Fetch({.method = "POST",
                               .url = base + "/v1/report?node=a%20b",
                               .headers = {{"Content-Type", "application/json"}, {"X-A", "b"}},
                               .body = "{\"x\":1}"});
  ASSERT_TRUE(response) << response.error().ToString();
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(FindHeader(response->headers, "x-version"), "7");
  EXPECT_EQ(response->body, "made");
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].method, "POST");
  EXPECT_EQ(requests[0].path(), "/v1/report");
  EXPECT_EQ(requests[0].query("node"), "a b");
  EXPECT_EQ(FindHeader(requests[0].headers, "content-type"), "application/json");
  EXPECT_EQ(FindHeader(requests[0].headers, "x-a"), "b");
  EXPECT_EQ(requests[0].body, "{\"x\":1}");
}

TEST_P(HttpClientContract, ALargeBodyNeedNotBeCopied) {
  const SharedBytes body(std::string(3'000'000, 'x') + "the end");
  const auto response = Fetch({.method = "PUT", .url = base + "/", .shared_body = body});
  ASSERT_TRUE(response) << response.error().ToString();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_TRUE(requests[0].body == body.view());
  EXPECT_EQ(ContentLength(requests[0].headers), body.size());
}

TEST_P(HttpClientContract, ErrorsOfTheServerAreResponses) {
  handler = [](const HttpRequest&, const HttpResponder& respond) {
    respond(HttpResponse::Text(503, "later"));
  };
  const auto response = Fetch({.url = base + "/"});
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 503);
  EXPECT_EQ(response->body, "later");
}

TEST_P(HttpClientContract, DoesNotFollowRedirects) {
  handler = [&](const HttpRequest&, const HttpResponder& respond) {
    respond({.status = 307, .headers = {{"Location", base + "/elsewhere"}}});
  };
  const auto response = Fetch({.url = base + "/"});
  ASSERT_TRUE(response) << response.error().ToString();
  EXPECT_EQ(response->status, 307);
  EXPECT_EQ(FindHeader(response->headers, "Location"), base + "/elsewhere");
  EXPECT_EQ(requests.size(), 1U);
}

TEST_P(HttpClientContract, ABodyOfExactlyTheLimitIsTakenAndNoLongerOne) {
  ByteCount size = 1_MiB;
  handler = [&](const HttpRequest&, const HttpResponder& respond) {
    respond(HttpResponse::Text(200, std::string(size, 'y')));
  };
  const auto whole = Fetch({.url = base + "/"});
  ASSERT_TRUE(whole) << whole.error().ToString();
  EXPECT_EQ(whole->body.size(), size);
  ++size;
  const auto longer = Fetch({.url = base + "/"});
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().code(), Code::kResourceExhausted);
}

TEST_P(HttpClientContract, AResponseToHeadHasNoBody) {
  const auto response = Fetch({.method = "HEAD", .url = base + "/"});
  ASSERT_TRUE(response) << response.error().ToString();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(FindHeader(response->headers, "content-length"), "5");
  EXPECT_EQ(response->body, "");
}

TEST_P(HttpClientContract, WaitsForALongPollAndNoLonger) {
  LetWait();
  // Until the request comes to the server in that time, too.
  for (Duration timeout = milliseconds(50); waiting.empty(); timeout *= 2) {
    const auto response = Fetch({.url = base + "/poll"}, timeout);
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code(), Code::kDeadlineExceeded);
    EXPECT_EQ(response.error().message(), base + "/poll: no response in time");
  }
  // The server sees that nobody waits any more.
  RunUntil(loop, [&] { return waiting[0].abandoned(); });
}

TEST_P(HttpClientContract, AServerThatHangsUpIsUnavailable) {
  handler = [&](const HttpRequest&, const HttpResponder&) { server.reset(); };
  const auto response = Fetch({.url = base + "/"});
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Code::kUnavailable);
}

TEST_P(HttpClientContract, HasNoMoreInFlightThanItMay) {
  LetWait();
  int good = 0;
  std::vector<Status> bad;
  for (int i = 0; i < 6; ++i) {
    client->Send({.url = base + "/poll"}, seconds(20), [&](const Result<HttpResponse>& response) {
      if (response) {
        ++good;
      } else {
        bad.push_back(response.error());
      }
    });
  }
  RunUntil(loop, [&] { return bad.size() == 2 && waiting.size() == 4; });
  EXPECT_EQ(bad[0].code(), Code::kResourceExhausted);
  for (const HttpResponder& respond : waiting)
    respond(HttpResponse::Text(200, ""));
  RunUntil(loop, [&] { return good == 4; });
}

TEST_P(HttpClientContract, MayDieInACallback) {
  int ends = 0;
  for (const std::string& url : {base + "/", std::string("nonsense")}) {
    client = MakeClient();
    client->Send({.url = url}, seconds(20), [&](const Result<HttpResponse>&) {
      client.reset();
      ++ends;
    });
    RunUntil(loop, [&] { return client == nullptr; });
  }
  LetWait();
  client = MakeClient();
  client->Send({.url = base + "/poll"}, milliseconds(20), [&](const Result<HttpResponse>&) {
    client.reset();
    ++ends;
  });
  RunUntil(loop, [&] { return client == nullptr; });
  EXPECT_EQ(ends, 3);
}

TEST_P(HttpClientContract, NothingIsCalledAfterItsDeath) {
  LetWait();
  const auto fail = [](const Result<HttpResponse>&) { FAIL() << "called after its death"; };
  client->Send({.url = base + "/poll"}, seconds(20), fail);
  RunUntil(loop, [&] { return waiting.size() == 1; });
  client->Send({.url = "nonsense"}, seconds(20), fail);
  client.reset();
  RunUntil(loop, [&] { return waiting[0].abandoned(); });
}

}  // namespace
}  // namespace optcache::net
