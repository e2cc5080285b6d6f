#include "kube/api_client.h"

#include <fstream>
#include <map>
#include <vector>

#include "kube/fenced_client.h"
#include "support/growing_deadline.h"
#include "support/temp_dir.h"
#include "unit/kube/api_fixture.h"

namespace optcache::kube {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class ApiClientTest : public ApiFixture {
 protected:
  ApiResult<Json> Get(const std::string& name) {
    return Wait([&](auto done) { client->Get(kPods, Key(name), done); });
  }
  ApiResult<Json> Create(const Json& object) {
    return Wait([&](auto done) { client->Create(kPods, object, done); });
  }
  void MakeClient(ApiClientOptions options) {
    client = MakeApiClient(loop, SystemClock(), *http, access, std::move(options));
  }
  double Counter(std::string_view wanted, const std::string& label_values) {
    double found = 0;
    client->VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
          std::string values;
          for (const auto& [label, text] : labels)
            values += text + " ";
          if (name == wanted && values == label_values) found = value;
        });
    return found;
  }
};

TEST_F(ApiClientTest, MakesReadsReplacesAndDeletes) {
  const auto made = Create(Pod("a"));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(GenerationOf(*made), 1);
  EXPECT_EQ(UidOf(*Get("a")), UidOf(*made));
  Json changed = *made;
  changed["spec"]["nodeName"] = "n";
  const auto replaced = Wait([&](auto done) { client->Update(kPods, changed, done); });
  ASSERT_TRUE(replaced.has_value());
  EXPECT_EQ(GenerationOf(*replaced), 2);
  const auto deleted = Wait<void>([&](auto done) { client->Delete(kPods, Key("a"), {}, done); });
  EXPECT_TRUE(deleted.has_value());
  EXPECT_TRUE(Get("a").error().not_found());
}

TEST_F(ApiClientTest, TellsAlreadyExistsConflictAndInvalid) {
  ASSERT_TRUE(Create(Pod("a")).has_value());
  EXPECT_TRUE(Create(Pod("a")).error().already_exists());
  Json stale = Pod("a");
  stale["metadata"]["resourceVersion"] = "1";
  const auto conflict = Wait([&](auto done) { client->Update(kPods, stale, done); });
  EXPECT_TRUE(conflict.error().conflict());
  server.FailNext("create", "pods", {.response = FakeError(422, "Invalid", "spec: no")});
  const auto invalid = Create(Pod("b"));
  EXPECT_EQ(invalid.error().status.code(), Code::kInvalidArgument);
  EXPECT_EQ(invalid.error().status.message(), "create pods vision: spec: no (422)");
}

TEST_F(ApiClientTest, KnowsANamespaceThatIsOnItsWayOut) {
  server.store([](FakeApiStore& store) { store.TerminateNamespace("vision"); });
  EXPECT_TRUE(Create(Pod("a")).error().namespace_terminating);
}

TEST_F(ApiClientTest, DeletesTheObjectThatWasMeantAndNoOther) {
  ASSERT_TRUE(Create(Pod("a")).has_value());
  const auto other =
      Wait<void>([&](auto done) { client->Delete(kPods, Key("a"), {.uid = "another"}, done); });
  EXPECT_TRUE(other.error().conflict());
  EXPECT_TRUE(Get("a").has_value());
}

TEST_F(ApiClientTest, ListsInPagesOf500) {
  server.store([](FakeApiStore& store) {
    for (int i = 0; i < 1200; ++i)
      store.Put(kPods, Pod("p" + std::to_string(i)));
    store.Put(kPods, Pod("elsewhere", "other"));
  });
  const auto list = Wait([&](auto done) { client->List(kPods, {.ns = "vision"}, done); });
  ASSERT_TRUE(list.has_value());
  EXPECT_EQ(Items(*list, "/items").size(), 1200U);
  EXPECT_EQ(server.Count("list"), 3U);
}

TEST_F(ApiClientTest, ServerSideApplyOwnsItsFieldsOnly) {
  Json pod = Pod("a");
  pod["metadata"]["annotations"]["by-hand"] = "kept";
  pod["spec"]["ours"] = "wrong";
  Put(pod);
  const auto apply = [&](const Json& spec) {
    Json wanted = Pod("a");
    wanted["spec"] = spec;
    return Wait([&](auto done) {
      client->Apply(kPods, wanted, {.field_manager = "optcache-operator"}, done);
    });
  };
  ASSERT_TRUE(apply({{"ours", 1}, {"also", 2}}).has_value());
  const auto left_out = apply({{"ours", 1}});
  ASSERT_TRUE(left_out.has_value());
  EXPECT_EQ(AnnotationOf(*left_out, "by-hand"), "kept");
  EXPECT_EQ(Find(*left_out, "/spec"), Json({{"ours", 1}}));  // What is left out goes.
  const FakeRequest sent = server.requests().back();
  EXPECT_EQ(sent.method, "PATCH");
  EXPECT_EQ(sent.headers.at("content-type"), "application/apply-patch+yaml");
  EXPECT_EQ(sent.query.at("fieldManager"), "optcache-operator");
  EXPECT_EQ(sent.query.at("force"), "true");
}

TEST_F(ApiClientTest, StatusIsWrittenBySubresourceAndSpecNeverTouchesIt) {
  Put(Pod("a"));
  Json wanted = Pod("a");
  wanted["status"]["phase"] = "Ready";
  wanted["spec"]["sneaked"] = "in";
  const auto applied = Wait([&](auto done) {
    client->Apply(kPods, wanted, {.field_manager = "m", .subresource = "status"}, done);
  });
  ASSERT_TRUE(applied.has_value());
  EXPECT_EQ(TextAt(*applied, "/status/phase"), "Ready");
  EXPECT_TRUE(Find(*applied, "/spec").is_null());
  EXPECT_EQ(server.requests().back().path, "/api/v1/namespaces/vision/pods/a/status");
  wanted["status"]["phase"] = "Wrong";
  const auto by_spec =
      Wait([&](auto done) { client->Apply(kPods, wanted, {.field_manager = "m"}, done); });
  EXPECT_EQ(TextAt(*by_spec, "/status/phase"), "Ready");
}

TEST_F(ApiClientTest, ReviewsTokens) {
  server.store([](FakeApiStore& store) {
    store.SetToken("good", {{"username", "system:serviceaccount:vision:default"}});
  });
  const auto good =
      Wait<TokenReview>([&](auto done) { client->ReviewToken("good", {"optcache"}, done); });
  ASSERT_TRUE(good.has_value());
  EXPECT_TRUE(good->authenticated);
  EXPECT_EQ(good->username, "system:serviceaccount:vision:default");
  const auto bad =
      Wait<TokenReview>([&](auto done) { client->ReviewToken("bad", {"optcache"}, done); });
  EXPECT_FALSE(bad->authenticated);
}

TEST_F(ApiClientTest, HonoursRetryAfter) {
  Put(Pod("a"));
  server.FailNext("get", "pods", TooManyRequests(1));
  const MonotonicTime begin = SystemClock().Now();
  EXPECT_TRUE(Get("a").has_value());
  EXPECT_GE(SystemClock().Now() - begin, seconds(1));
  EXPECT_EQ(server.Count("get"), 2U);
  EXPECT_EQ(Counter("rest_client_request_retries_total", "429 get "), 1);
}

TEST_F(ApiClientTest, AWaitBeyondTheTimeoutIsNotBegun) {
  MakeClient({.request_timeout = minutes(2)});
  server.FailNext("get", "pods", TooManyRequests(180));
  const auto answer = Get("a");
  EXPECT_EQ(answer.error().status.code(), Code::kResourceExhausted);
  EXPECT_EQ(answer.error().retry_after, seconds(180));
  EXPECT_EQ(server.Count("get"), 1U);
}

TEST_F(ApiClientTest, TurnsAwayAreWaitedOutOnlySoOften) {
  MakeClient({.max_retries = 2});
  server.FailNext("get", "pods", TooManyRequests(0), 100);
  EXPECT_EQ(Get("a").error().http_status, 429);
  EXPECT_EQ(server.Count("get"), 3U);
}

class TokenTest : public ApiClientTest {
 protected:
  TokenTest() {
    access.token_file = dir.path() + "/token";
    Write("one");
    server.RequireToken("one");
    Put(Pod("a"));
    MakeClient({});
  }
  void Write(const std::string& token) const { std::ofstream(access.token_file) << token; }

  TempDir dir;
};

TEST_F(TokenTest, IsSent) {
  EXPECT_TRUE(Get("a").has_value());
  EXPECT_EQ(server.requests().back().headers.at("authorization"), "Bearer one");
}

TEST_F(TokenTest, ThatWasReplacedIsReadAgainWhenTheOldIsRefused) {
  EXPECT_TRUE(Get("a").has_value());
  Write("two");
  server.RequireToken("two");
  EXPECT_TRUE(Get("a").has_value());
  EXPECT_EQ(server.Count("get"), 3U);
}

TEST_F(TokenTest, ThatStaysRefusedIsAnErrorAfterOneMoreTry) {
  server.RequireToken("another");
  const auto answer = Get("a");
  EXPECT_TRUE(answer.error().unauthorized());
  EXPECT_EQ(answer.error().status.code(), Code::kPermissionDenied);
  EXPECT_EQ(server.Count("get"), 2U);
}

TEST_F(ApiClientTest, WithoutATokenFileNothingIsSent) {
  access.token_file = "/nowhere/token";
  MakeClient({});
  const auto answer = Get("a");
  ASSERT_FALSE(answer.has_value());
  EXPECT_TRUE(answer.error().status.message().starts_with("token of the ServiceAccount: "));
  EXPECT_EQ(server.Count(""), 0U);
}

TEST_F(ApiClientTest, ASilentServerIsADeadline) {
  MakeClient({.request_timeout = milliseconds(200)});
  server.FailNext("get", "", {.kind = FakeFault::Kind::kStall});
  EXPECT_EQ(Get("a").error().status.code(), Code::kDeadlineExceeded);
}

TEST_F(ApiClientTest, AServerThatIsAwayIsUnavailable) {
  server.Stop();
  const auto answer = Get("a");
  EXPECT_EQ(answer.error().status.code(), Code::kUnavailable);
  EXPECT_EQ(answer.error().http_status, 0);
  EXPECT_TRUE(answer.error().transient());
  server.Start();
  EXPECT_TRUE(Get("a").error().not_found());
}

TEST_F(ApiClientTest, WaitsForAPlaceAndNoLongerThanItsTimeout) {
  MakeClient({.request_timeout = milliseconds(300), .max_in_flight = 2});
  server.FailNext("get", "", {.kind = FakeFault::Kind::kStall}, 100);
  std::vector<Code> codes;
  for (int i = 0; i < 5; ++i) {
    client->Get(kPods, Key("a"), [&](const ApiResult<Json>& answer) {
      codes.push_back(answer.error().status.code());
    });
  }
  EXPECT_EQ(Counter("rest_client_requests_waiting", ""), 3);
  RunUntil([&] { return codes.size() == 5; });
  EXPECT_EQ(codes, std::vector<Code>(5, Code::kDeadlineExceeded));
  EXPECT_LE(server.Count("get"), 4U);
}

TEST_F(ApiClientTest, OnlySoManyMayWait) {
  MakeClient({.request_timeout = milliseconds(300), .max_in_flight = 1, .max_waiting = 1});
  server.FailNext("get", "", {.kind = FakeFault::Kind::kStall}, 100);
  std::map<int, Code> codes;
  for (int i = 0; i < 3; ++i) {
    client->Get(kPods, Key("a"), [&codes, i](const ApiResult<Json>& answer) {
      codes.emplace(i, answer.error().status.code());
    });
  }
  EXPECT_TRUE(codes.empty());  // Never from within the call.
  RunUntil([&] { return codes.size() == 3; });
  EXPECT_EQ(codes, (std::map<int, Code>{{0, Code::kDeadlineExceeded},
                                        {1, Code::kDeadlineExceeded},
                                        {2, Code::kResourceExhausted}}));
}

TEST_F(ApiClientTest, ManyRequestsAllEnd) {
  server.store([](FakeApiStore& store) {
    for (int i = 0; i < 300; ++i)
      store.Put(kPods, Pod("p" + std::to_string(i)));
  });
  int good = 0;
  for (int i = 0; i < 300; ++i) {
    client->Get(kPods, Key("p" + std::to_string(i)),
                [&](const ApiResult<Json>& answer) { good += answer.has_value() ? 1 : 0; });
  }
  RunUntil([&] { return good == 300; });
  EXPECT_EQ(Counter("rest_client_requests_total", "200 GET "), 300);
  EXPECT_EQ(Counter("rest_client_request_duration_seconds_count", "get "), 300);
}

TEST_F(ApiClientTest, WhoLeadsNoMoreWritesNothing) {
  std::optional<MonotonicTime> until;
  FencedClient fenced(*client, [&] { return until; });
  const auto write = [&] { return Wait([&](auto done) { fenced.Create(kPods, Pod("a"), done); }); };
  EXPECT_EQ(write().error().status.code(), Code::kCancelled);
  until = SystemClock().Now() - seconds(1);
  EXPECT_EQ(write().error().status.code(), Code::kCancelled);
  EXPECT_EQ(server.Writes(), 0U);
  until = SystemClock().Now() + minutes(5);
  EXPECT_TRUE(write().has_value());
}

TEST_F(ApiClientTest, AWriteThatWaitsWhileTheLeadershipEndsIsNotSent) {
  MakeClient({.max_in_flight = 1});
  bool leads = true;
  FencedClient fenced(*client, [&] {
    return leads ? std::optional(SystemClock().Now() + minutes(5)) : std::nullopt;
  });
  server.FailNext("get", "", TooManyRequests(-1));
  client->Get(kPods, Key("a"), [&](const ApiResult<Json>&) {});
  std::optional<ApiResult<Json>> written;
  fenced.Create(kPods, Pod("b"), [&](ApiResult<Json> answer) { written = std::move(answer); });
  leads = false;
  RunUntil([&] { return written.has_value(); });
  EXPECT_EQ(written->error().status.code(), Code::kCancelled);
  EXPECT_EQ(server.Writes(), 0U);
}

TEST_F(ApiClientTest, AWriteHasNoMoreTimeThanTheLeadership) {
  MakeClient({.request_timeout = hours(1)});
  server.FailNext("create", "", {.kind = FakeFault::Kind::kStall}, 100);
  EXPECT_TRUE(HoldsForSomeDeadline(milliseconds(300), [&](Duration leads_for) {
    FencedClient fenced(*client,
                        [until = SystemClock().Now() + leads_for] { return std::optional(until); });
    const auto answer = Wait([&](auto done) { fenced.Create(kPods, Pod("a"), done); });
    return answer.error().status.code() == Code::kDeadlineExceeded;  // else it came too late
  }));
}

TEST_F(ApiClientTest, NothingIsCalledAfterItsDeath) {
  server.FailNext("get", "", TooManyRequests(0), 100);
  const auto fail = [](const ApiResult<Json>&) { FAIL() << "called after its death"; };
  client->Get(kPods, Key("a"), fail);
  RunUntil([&] { return server.Count("get") > 0; });
  client->Get(kPods, Key("a"), fail);
  client.reset();
  RunFor(milliseconds(100));
}

}  // namespace
}  // namespace optcache::kube
