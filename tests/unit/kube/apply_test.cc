#include "kube/apply.h"

#include <gtest/gtest.h>

#include "unit/kube/scripted_client.h"

namespace optcache::kube {
namespace {

TEST(Project, KeepsWhatIsSpokenOf) {
  const Json wanted = {{"spec", {{"replicas", 1}, {"paused", false}}}};
  const Json object = {{"spec", {{"replicas", 5}, {"selector", "x"}}}, {"status", 7}};
  EXPECT_EQ(Project(wanted, object), Json({{"spec", {{"replicas", 5}}}}));
}

TEST(Project, EntriesOfListsAreFoundByTheirKey) {
  const Json wanted = Json::parse(R"([{"name": "b", "image": "1"}, {"name": "gone"}])");
  const Json object =
      Json::parse(R"([{"name": "istio"}, {"name": "b", "image": "2", "ports": []}])");
  EXPECT_EQ(Project(wanted, object), Json::parse(R"([{"name": "b", "image": "2"}])"));
}

TEST(Project, OtherListsAreWhole) {
  EXPECT_EQ(Project(Json::array({"a"}), Json::array({"a", "b"})), Json::array({"a", "b"}));
  EXPECT_EQ(Project(Json::array(), Json::array({1})), Json::array({1}));
}

class ApplierTest : public testing::Test {
 protected:
  static Json ConfigMap(const std::string& content) {
    Json object = MakeObject(kConfigMaps, {.ns = "vision", .name = "optcache-ca"});
    object["data"] = {{"ca.crt", content}};
    return object;
  }
  // As the server has it.
  static Json Stored(Json object, const std::string& version, const std::string& uid = "u1") {
    object["metadata"]["resourceVersion"] = version;
    object["metadata"]["uid"] = uid;
    object["metadata"]["creationTimestamp"] = "2027-01-15T08:00:00Z";
    return object;
  }
  void Run(const Json& object, const Json& present) {
    result.reset();
    applier.Run({{.resource = kConfigMaps,
                  .object = object,
                  .present = present.is_null() ? nullptr : std::make_shared<const Json>(present)}},
                {}, [this](ApiResult<ApplyOutcome> outcome) { result = std::move(outcome); });
  }
  // Applied once, and the server has made `answer` of it.
  void ApplyOnce(const Json& object, const Json& answer) {
    Run(object, Json());
    client.Answer(answer);
    ASSERT_TRUE(result.has_value());
    ASSERT_EQ((*result)->written, 1U);
  }
  bool WritesFor(const Json& object, const Json& present) {
    Run(object, present);
    if (client.waiting.empty()) {
      EXPECT_EQ((*result)->skipped, 1U);
      return false;
    }
    client.waiting.clear();
    return true;
  }

  ScriptedClient client;
  Applier applier{client, {.field_manager = "optcache-operator"}};
  std::optional<ApiResult<ApplyOutcome>> result;
};

TEST_F(ApplierTest, AppliesByServerSideApplyUnderItsName) {
  Run(ConfigMap("ca"), Json());
  EXPECT_EQ(client.Next().verb, Verb::kApply);
  EXPECT_EQ(client.Next().key, (ObjectKey{.ns = "vision", .name = "optcache-ca"}));
  EXPECT_EQ(client.Next().query, (std::vector<std::pair<std::string, std::string>>{
                                     {"fieldManager", "optcache-operator"}, {"force", "true"}}));
  EXPECT_EQ(Json::parse(client.Next().body), ConfigMap("ca"));
}

TEST_F(ApplierTest, WritesNothingWhenNothingWouldChange) {
  ApplyOnce(ConfigMap("ca"), Stored(ConfigMap("ca"), "5"));
  EXPECT_FALSE(WritesFor(ConfigMap("ca"), Stored(ConfigMap("ca"), "5")));
  EXPECT_FALSE(WritesFor(ConfigMap("ca"), Stored(ConfigMap("ca"), "9")));
}

TEST_F(ApplierTest, OthersMayHaveFieldsOfTheirOwn) {
  ApplyOnce(ConfigMap("ca"), Stored(ConfigMap("ca"), "5"));
  Json present = Stored(ConfigMap("ca"), "6");
  present["metadata"]["annotations"]["kubectl"] = "was here";
  EXPECT_FALSE(WritesFor(ConfigMap("ca"), present));
}

TEST_F(ApplierTest, WhatSomebodyElseChangedIsWrittenAgain) {
  ApplyOnce(ConfigMap("ca"), Stored(ConfigMap("ca"), "5"));
  EXPECT_TRUE(WritesFor(ConfigMap("ca"), Stored(ConfigMap("by hand"), "6")));
}

TEST_F(ApplierTest, WhatWeWantAnewIsWritten) {
  ApplyOnce(ConfigMap("ca"), Stored(ConfigMap("ca"), "5"));
  EXPECT_TRUE(WritesFor(ConfigMap("new ca"), Stored(ConfigMap("ca"), "5")));
  // Also a field that we want no more.
  Json less = ConfigMap("ca");
  less["data"] = Json::object();
  EXPECT_TRUE(WritesFor(less, Stored(ConfigMap("ca"), "5")));
}

TEST_F(ApplierTest, ACacheThatHasNotSeenOurWriteYetIsNoDrift) {
  ApplyOnce(ConfigMap("new"), Stored(ConfigMap("new"), "10"));
  EXPECT_FALSE(WritesFor(ConfigMap("new"), Stored(ConfigMap("old"), "9")));
}

TEST_F(ApplierTest, WhatTheServerMadeOfItIsNoDrift) {
  Json wanted = ConfigMap("");
  wanted["spec"]["memory"] = "1024Mi";
  Json made = wanted;
  made["spec"]["memory"] = "1Gi";
  ApplyOnce(wanted, Stored(made, "5"));
  EXPECT_FALSE(WritesFor(wanted, Stored(made, "7")));
}

TEST_F(ApplierTest, AnObjectThatWasDeletedOrMadeAgainIsWritten) {
  ApplyOnce(ConfigMap("ca"), Stored(ConfigMap("ca"), "5"));
  EXPECT_TRUE(WritesFor(ConfigMap("ca"), Json()));
  EXPECT_TRUE(WritesFor(ConfigMap("ca"), Stored(ConfigMap("ca"), "9", "u2")));
}

TEST_F(ApplierTest, ANewProcessAppliesOnceThoughAllLooksWell) {
  EXPECT_TRUE(WritesFor(ConfigMap("ca"), Stored(ConfigMap("ca"), "5")));
}

TEST_F(ApplierTest, AFailedApplyIsNotRemembered) {
  ApplyOnce(ConfigMap("ca"), Stored(ConfigMap("ca"), "5"));
  Run(ConfigMap("new"), Stored(ConfigMap("ca"), "5"));
  client.Fail(503);
  EXPECT_EQ(result->error().status.code(), Code::kUnavailable);
  EXPECT_TRUE(WritesFor(ConfigMap("ca"), Stored(ConfigMap("ca"), "5")));
}

TEST_F(ApplierTest, StatusIsAnApplyOfItsOwn) {
  ApplyOnce(ConfigMap("ca"), Stored(ConfigMap("ca"), "5"));
  applier.Run({{.resource = kConfigMaps, .object = ConfigMap("ca"), .subresource = "status"}}, {},
              [](const ApiResult<ApplyOutcome>&) {});
  ASSERT_EQ(client.waiting.size(), 1U);
  EXPECT_EQ(client.Next().subresource, "status");
}

TEST_F(ApplierTest, WhatIsOnlyToBeCreatedTakesNothingOver) {
  const auto run = [this](ObjectCache::Entry present) {
    result.reset();
    applier.Run({{.resource = kConfigMaps,
                  .object = ConfigMap("ca"),
                  .present = std::move(present),
                  .create_only = true}},
                {}, [this](ApiResult<ApplyOutcome> outcome) { result = std::move(outcome); });
  };
  run(nullptr);
  EXPECT_EQ(client.Next().verb, Verb::kCreate);
  client.Answer(Stored(ConfigMap("ca"), "5"));
  EXPECT_EQ((*result)->written, 1U);
  run(nullptr);  // There is one that the cache does not show.
  client.Fail(409, "AlreadyExists");
  EXPECT_EQ((*result)->skipped, 1U);
  run(std::make_shared<const Json>(Stored(ConfigMap("theirs"), "6")));
  EXPECT_TRUE(client.waiting.empty());
  EXPECT_EQ((*result)->skipped, 1U);
  run(nullptr);
  client.Fail(500);
  EXPECT_FALSE(result->has_value());
}

TEST_F(ApplierTest, AnObjectThatWeDeletedIsAppliedWhenItIsWantedAgain) {
  ApplyOnce(ConfigMap("ca"), Stored(ConfigMap("ca"), "5"));
  applier.Run({}, {{.resource = kConfigMaps, .key = KeyOf(ConfigMap("ca"))}},
              [](const ApiResult<ApplyOutcome>&) {});
  client.Answer(Json::object());
  EXPECT_TRUE(WritesFor(ConfigMap("ca"), Stored(ConfigMap("ca"), "5")));
}

TEST_F(ApplierTest, AppliesInOrderThenDeletesAndStopsAtTheFirstError) {
  std::optional<ApiResult<ApplyOutcome>> outcome;
  Json second = ConfigMap("2");
  second["metadata"]["name"] = "second";
  applier.Run(
      {{.resource = kConfigMaps, .object = ConfigMap("1")},
       {.resource = kConfigMaps, .object = second}},
      {{.resource = kJobs, .key = {.ns = "vision", .name = "old"}, .options = {.uid = "u7"}},
       {.resource = kJobs, .key = {.ns = "vision", .name = "older"}}},
      [&](ApiResult<ApplyOutcome> result_) { outcome = std::move(result_); });
  ASSERT_EQ(client.waiting.size(), 1U);
  client.Answer(Stored(ConfigMap("1"), "5"));
  EXPECT_EQ(client.Next().key.name, "second");
  client.Answer(Stored(second, "6"));
  EXPECT_EQ(client.Next().verb, Verb::kDelete);
  EXPECT_EQ(TextAt(Json::parse(client.Next().body), "/preconditions/uid"), "u7");
  client.Fail(404, "NotFound");  // Gone already: just as well.
  client.Fail(403, "Forbidden");
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->error().status.code(), Code::kPermissionDenied);
}

TEST_F(ApplierTest, RemembersOnlySoMany) {
  Applier small(client, {.field_manager = "m", .max_remembered = 1});
  const auto run = [&](const std::string& name) {
    Json object = ConfigMap("ca");
    object["metadata"]["name"] = name;
    small.Run({{.resource = kConfigMaps,
                .object = object,
                .present = std::make_shared<const Json>(Stored(object, "5"))}},
              {}, [](const ApiResult<ApplyOutcome>&) {});
    const bool writes = !client.waiting.empty();
    if (writes) client.Answer(Stored(object, "5"));
    return writes;
  };
  EXPECT_TRUE(run("a"));
  EXPECT_FALSE(run("a"));
  EXPECT_TRUE(run("b"));
  EXPECT_TRUE(run("a"));
}

TEST_F(ApplierTest, WhatWasForgottenOnceIsRememberedAsLongAsAnyOther) {
  Applier small(client, {.field_manager = "m", .max_remembered = 2});
  const auto start = [&](const std::string& name, const std::string& content) {
    Json object = ConfigMap(content);
    object["metadata"]["name"] = name;
    const Json present = Stored(object, "5");
    small.Run({{.resource = kConfigMaps,
                .object = object,
                .present = std::make_shared<const Json>(present)}},
              {}, [](const ApiResult<ApplyOutcome>&) {});
    return present;
  };
  const auto apply = [&](const std::string& name) { client.Answer(start(name, "ca")); };
  const auto remove = [&](const std::string& name) {
    small.Run({}, {{.resource = kConfigMaps, .key = {.ns = "vision", .name = name}}},
              [](const ApiResult<ApplyOutcome>&) {});
    client.Answer(Json::object());
  };
  const auto expect_remembered = [&](const std::string& name) {
    start(name, "ca");
    EXPECT_TRUE(client.waiting.empty()) << name;
    client.waiting.clear();
  };
  apply("a");
  apply("b");
  start("a", "other");
  client.Fail(503);
  apply("a");
  expect_remembered("a");
  expect_remembered("b");
  remove("b");
  apply("b");
  expect_remembered("b");
  expect_remembered("a");
}

}  // namespace
}  // namespace optcache::kube
