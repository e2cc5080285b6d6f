#include "kube/client.h"

#include <gtest/gtest.h>

#include "unit/kube/scripted_client.h"

namespace optcache::kube {
namespace {

using Query = std::vector<std::pair<std::string, std::string>>;

class ClientTest : public testing::Test {
 protected:
  Client::ObjectCallback Keep() {
    return [this](ApiResult<Json> object) { result = std::move(object); };
  }
  static Json Page(std::vector<int> items, const std::string& continue_token) {
    return {{"kind", "PodList"},
            {"metadata", {{"resourceVersion", "7"}, {"continue", continue_token}}},
            {"items", std::move(items)}};
  }

  ScriptedClient client;
  std::optional<ApiResult<Json>> result;
};

TEST_F(ClientTest, SendsWhatIsNoUtf8WithoutIt) {
  const Json object = {{"metadata", {{"name", "a"}}}, {"status", {{"job", "half of \xe2\x82"}}}};
  client.Apply(kPods, object, {.field_manager = "test"}, Keep());
  EXPECT_EQ(TextAt(Json::parse(client.Next().body), "/status/job"), "half of \xef\xbf\xbd");
}

TEST_F(ClientTest, ListsAllPages) {
  client.List(kPods, {.ns = "vision", .labels = "a=b", .fields = "spec.nodeName=n"}, Keep());
  EXPECT_EQ(
      client.Next().query,
      (Query{{"labelSelector", "a=b"}, {"fieldSelector", "spec.nodeName=n"}, {"limit", "500"}}));
  EXPECT_EQ(client.Next().key.ns, "vision");
  client.Answer(Page({1, 2}, "more"));
  EXPECT_EQ(client.Next().query.back(), (std::pair<std::string, std::string>("continue", "more")));
  client.Answer(Page({3}, ""));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ((*result)->at("items"), Json({1, 2, 3}));
  EXPECT_EQ(ResourceVersionOf(**result), "7");
}

TEST_F(ClientTest, AListFailsWithItsPage) {
  client.List(kPods, {}, Keep());
  client.Answer(Page({1}, "more"));
  client.Fail(410, "Expired");
  EXPECT_TRUE(result->error().expired());
}

TEST_F(ClientTest, AnEmptyListMayHaveNoItems) {
  client.List(kPods, {}, Keep());
  client.Answer(Json{{"items", nullptr}});
  EXPECT_EQ((*result)->at("items"), Json::array());
  client.List(kPods, {}, Keep());
  client.Answer(Json{{"items", "odd"}});
  EXPECT_EQ(result->error().status.code(), Code::kDataLoss);
}

TEST_F(ClientTest, CreatesInTheObjectsNamespace) {
  client.Create(kPods, MakeObject(kPods, {.ns = "a", .name = "b"}), Keep());
  EXPECT_EQ(client.Next().verb, Verb::kCreate);
  EXPECT_EQ(client.Next().key, (ObjectKey{.ns = "a", .name = ""}));
}

TEST_F(ClientTest, ReplacesByName) {
  client.Update(kPods, MakeObject(kPods, {.ns = "a", .name = "b"}), Keep());
  EXPECT_EQ(client.Next().verb, Verb::kUpdate);
  EXPECT_EQ(client.Next().key, (ObjectKey{.ns = "a", .name = "b"}));
}

TEST_F(ClientTest, AppliesUnderAManagersName) {
  client.Apply(kPods, MakeObject(kPods, {.ns = "a", .name = "b"}),
               {.field_manager = "m", .force = false, .subresource = "status", .dry_run = true},
               Keep());
  EXPECT_EQ(client.Next().verb, Verb::kApply);
  EXPECT_EQ(client.Next().subresource, "status");
  EXPECT_EQ(client.Next().query, (Query{{"fieldManager", "m"}, {"dryRun", "All"}}));
}

TEST_F(ClientTest, DeletesWithPreconditions) {
  std::optional<ApiResult<void>> done;
  client.Delete(kPods, {.ns = "a", .name = "b"},
                {.uid = "u", .resource_version = "5", .propagation = Propagation::kForeground},
                [&](ApiResult<void> answer) { done = std::move(answer); });
  EXPECT_EQ(Json::parse(client.Next().body),
            Json({{"apiVersion", "v1"},
                  {"kind", "DeleteOptions"},
                  {"propagationPolicy", "Foreground"},
                  {"preconditions", {{"uid", "u"}, {"resourceVersion", "5"}}}}));
  client.Answer(Json::object());
  EXPECT_TRUE(done.has_value() && done->has_value());
}

TEST_F(ClientTest, ADeletionThatFailsSaysWhy) {
  std::optional<ApiResult<void>> done;
  client.Delete(kPods, {.ns = "a", .name = "b"}, {},
                [&](ApiResult<void> answer) { done = std::move(answer); });
  client.Fail(404, "NotFound");
  EXPECT_TRUE(done->error().not_found());
}

TEST_F(ClientTest, ReviewsTokens) {
  std::optional<ApiResult<TokenReview>> review;
  client.ReviewToken("secret", {"optcache"},
                     [&](ApiResult<TokenReview> answer) { review = std::move(answer); });
  const Json body = Json::parse(client.Next().body);
  EXPECT_EQ(TextAt(body, "/kind"), "TokenReview");
  EXPECT_EQ(TextAt(body, "/spec/token"), "secret");
  EXPECT_EQ(Items(body, "/spec/audiences"), Json({"optcache"}));
  client.Answer(Json::parse(R"({"status": {"authenticated": true, "audiences": ["optcache"],
      "user": {"username": "system:serviceaccount:vision:default", "uid": "u", "groups": ["g"],
               "extra": {"authentication.kubernetes.io/pod-name": ["train-0"]}}}})"));
  ASSERT_TRUE(review->has_value());
  EXPECT_TRUE((*review)->authenticated);
  EXPECT_EQ((*review)->username, "system:serviceaccount:vision:default");
  EXPECT_EQ((*review)->uid, "u");
  EXPECT_EQ((*review)->groups, std::vector<std::string>{"g"});
  EXPECT_EQ((*review)->audiences, std::vector<std::string>{"optcache"});
  EXPECT_EQ((*review)->extra.at("authentication.kubernetes.io/pod-name"),
            std::vector<std::string>{"train-0"});
}

TEST_F(ClientTest, ATokenThatIsNotAuthenticatedIsAnAnswerAndNoAnswerIsAnError) {
  EXPECT_FALSE(ParseTokenReview(Json{{"status", {{"error", "expired"}}}})->authenticated);
  EXPECT_EQ(ParseTokenReview(Json{{"status", {{"error", "expired"}}}})->error, "expired");
  EXPECT_EQ(ParseTokenReview(Json::object()).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace optcache::kube
