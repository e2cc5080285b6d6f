#include "cache-node/control/control_http.h"

#include <optional>

#include <gtest/gtest.h>

#include "unit/cache-node/fake_http.h"

namespace optcache::node {
namespace {

using net::HttpResponse;
using std::chrono::seconds;

HttpResponse RedirectTo(const std::string& location) {
  return {.status = 307, .headers = {{"Location", location}}};
}

class ControlHttpTest : public testing::Test {
 protected:
  void Send() {
    control_->Send({.method = "POST", .url = "/v1/report?a=b", .body = "body"}, seconds(5),
                   [this](Result<HttpResponse> response) { answer_ = std::move(response); });
  }
  std::string LastUrl() const { return http_.requests.back().url; }

  FakeHttp http_;
  std::optional<ControlHttp> control_{std::in_place, http_, "https://operator.system.svc:8443"};
  std::optional<Result<HttpResponse>> answer_;
};

TEST_F(ControlHttpTest, AsksAtTheBase) {
  Send();
  EXPECT_EQ(LastUrl(), "https://operator.system.svc:8443/v1/report?a=b");
  http_.Answer(HttpResponse::Text(200, "yes"));
  EXPECT_EQ(answer_->value().body, "yes");
}

TEST_F(ControlHttpTest, AsksTheLeaderWhomAnotherReplicaNames) {
  Send();
  http_.Answer(RedirectTo("https://10.0.0.7:8443/v1/report?a=b"));
  EXPECT_EQ(LastUrl(), "https://10.0.0.7:8443/v1/report?a=b");
  EXPECT_EQ(http_.requests.back().method, "POST");
  EXPECT_EQ(http_.requests.back().body, "body");
  EXPECT_FALSE(answer_.has_value());
  http_.Answer(HttpResponse::Text(200, "yes"));
  EXPECT_EQ(answer_->value().body, "yes");
  Send();
  EXPECT_EQ(LastUrl(), "https://10.0.0.7:8443/v1/report?a=b") << "remembered";
}

TEST_F(ControlHttpTest, ForgetsALeaderThatIsGone) {
  Send();
  http_.Answer(RedirectTo("https://10.0.0.7:8443/"));
  http_.Answer(Error(Code::kUnavailable, "connection refused"));
  EXPECT_FALSE(answer_->has_value());
  Send();
  EXPECT_EQ(LastUrl(), "https://operator.system.svc:8443/v1/report?a=b");
}

TEST_F(ControlHttpTest, ForgetsALeaderThatLeadsNoMore) {
  Send();
  http_.Answer(RedirectTo("https://10.0.0.7:8443/"));
  http_.Answer(HttpResponse::Text(503, "nobody leads"));
  Send();
  EXPECT_EQ(LastUrl(), "https://operator.system.svc:8443/v1/report?a=b");
}

TEST_F(ControlHttpTest, ReplicasThatPointAtEachOtherEndInABackoff) {
  Send();
  for (int i = 0; i < 3; ++i)
    http_.Answer(RedirectTo("https://10.0.0." + std::to_string(i) + ":8443/"));
  http_.Answer(RedirectTo("https://10.0.0.9:8443/"));
  ASSERT_TRUE(answer_.has_value());
  EXPECT_EQ(answer_->value().status, 307);
  EXPECT_TRUE(http_.waiting.empty());
}

TEST_F(ControlHttpTest, IsNotLedOutOfTls) {
  for (const char* location : {"http://10.0.0.7:8443/", "ftp://10.0.0.7/", "/elsewhere", ""}) {
    answer_.reset();
    Send();
    http_.Answer(RedirectTo(location));
    ASSERT_TRUE(answer_.has_value()) << location;
    EXPECT_EQ(answer_->value().status, 307);
  }
}

TEST_F(ControlHttpTest, OnALaptopNothingIsFollowed) {
  control_.emplace(http_, "http://127.0.0.1:4000");
  Send();
  http_.Answer(RedirectTo("https://10.0.0.7:8443/"));
  ASSERT_TRUE(answer_.has_value());
  EXPECT_EQ(http_.requests.size(), 1U);
}

TEST_F(ControlHttpTest, NothingComesAfterItsEnd) {
  Send();
  control_.reset();
  http_.Answer(HttpResponse::Text(200, "yes"));
  EXPECT_FALSE(answer_.has_value());
}

}  // namespace
}  // namespace optcache::node
