#include "operator/reconcile/cacheplan/revisions.h"

#include <gtest/gtest.h>

#include "dataset/digest.h"
#include "operator/api/job_recipes.h"
#include "operator/api/resources.h"

namespace optcache::reconcile {
namespace {

using kube::Json;

class Revisions : public testing::Test {
 protected:
  Revisions() {
    plan_ = kube::MakeObject(api::kCachePlans, {.ns = "vision", .name = "mine"});
    plan_["metadata"]["uid"] = "plan-uid";
  }
  static Json Content(const std::string& retention) {
    return api::RevisionContent(api::ParseRevisionContent({{"retention", retention}}).value());
  }
  void Add(const std::string& hash, std::int64_t number, const Json& content,
           const std::string& owner = "plan-uid") {
    revisions_.push_back({.name = "mine-" + hash,
                          .uid = "uid-" + hash,
                          .owner_uid = owner,
                          .number = number,
                          .content = content});
  }
  RevisionChoice Choose(const Json& content, std::int64_t collisions = 0) {
    return ChooseRevision(plan_, content, revisions_, collisions);
  }

  Json plan_;
  std::vector<Revision> revisions_;
};

TEST_F(Revisions, AreNamedByTheHashOfTheirContent) {
  const auto spec = api::ParseRevisionContent(
      Json::parse(R"({"jobs": [{"name": "resnet", "sampler": {"epochs": 90, "worldSize": 8}}]})"));
  ASSERT_TRUE(spec);
  const std::string text = R"({"jobs":[{"name":"resnet","sampler":{"dropLast":false,"epochs":90,)"
                           R"("kind":"TorchDistributed","seed":0,"shuffle":true,"worldSize":8}}],)"
                           R"("objective":"Bytes","retention":"Optimal"})";
  EXPECT_EQ(api::RevisionContent(*spec).dump(), text);
  EXPECT_EQ(RevisionHash(api::RevisionContent(*spec), 0),
            dataset::ToHex(dataset::Sha256Of(AsBytes(text))).substr(0, 10));
  EXPECT_EQ(HashOfName("mine", RevisionName("mine", "0123456789")), "0123456789");
  EXPECT_EQ(HashOfName("mine", "mine"), "");
  EXPECT_EQ(HashOfName("min", "mine-0123456789"), "");
  for (const char* name : {"mine-old-0123456789", "mine-012345678", "mine-01234567890",
                           "mine-012345678G", "mine-012345678A", "mine-"})
    EXPECT_EQ(HashOfName("mine", name), "") << name;
  EXPECT_EQ((Revision{.name = "mine-old-0123456789"}.hash()), "0123456789");
}

TEST_F(Revisions, ANewContentIsWrittenOnceAndNeverOverAnother) {
  Add("0000000000", 4, Content("Pin"));
  const RevisionChoice choice = Choose(Content("LRU"));
  EXPECT_EQ(choice.hash, RevisionHash(Content("LRU"), 0));
  ASSERT_TRUE(choice.change);
  EXPECT_TRUE(choice.change->create_only);
  const Json& object = choice.change->object;
  EXPECT_EQ(kube::KeyOf(object).name, "mine-" + choice.hash);
  EXPECT_EQ(object["revision"], 5);
  EXPECT_EQ(object["data"]["spec"], Content("LRU"));
  EXPECT_EQ(kube::LabelOf(object, kPlanLabel), "mine");
  EXPECT_EQ(kube::ControllerOf(object)->uid, "plan-uid");
}

TEST_F(Revisions, WhatIsThereIsNotWrittenAgain) {
  Add("0000000000", 4, Content("Pin"));
  const RevisionChoice choice = Choose(Content("Pin"));
  EXPECT_EQ(choice.hash, "0000000000");
  EXPECT_FALSE(choice.change);
}

TEST_F(Revisions, AnOldContentGetsANewNumber) {
  Add("0000000000", 4, Content("Pin"));
  Add("1111111111", 5, Content("LRU"));
  const RevisionChoice choice = Choose(Content("Pin"));
  EXPECT_EQ(choice.hash, "0000000000");
  ASSERT_TRUE(choice.change);
  EXPECT_FALSE(choice.change->create_only);
  EXPECT_EQ(choice.change->object["revision"], 6);
}

TEST_F(Revisions, OfEqualContentTheOneInUseIsTakenEachTime) {
  Add("0000000000", 4, Content("Pin"));
  Add("1111111111", 5, Content("Pin"));  // made by hand
  const RevisionChoice newest = Choose(Content("Pin"));
  EXPECT_EQ(newest.hash, "1111111111");
  EXPECT_FALSE(newest.change);
  for (const char* field : {"updateRevision", "currentRevision"}) {
    plan_["status"] = {{field, "mine-0000000000"}};
    const RevisionChoice used = Choose(Content("Pin"));
    EXPECT_EQ(used.hash, "0000000000") << field;
    ASSERT_TRUE(used.change);
    EXPECT_EQ(used.change->object["revision"], 6);
  }
  std::swap(revisions_[0], revisions_[1]);
  revisions_[1].number = 6;
  EXPECT_FALSE(Choose(Content("Pin")).change) << "that is the end of it";
}

TEST_F(Revisions, SayWhyAsTheCachePlanDoes) {
  const auto cause_of = [](const RevisionChoice& choice) {
    return kube::AnnotationOf(choice.change->object, "kubernetes.io/change-cause");
  };
  EXPECT_EQ(cause_of(Choose(Content("LRU"))), std::nullopt);
  plan_["metadata"]["annotations"]["kubernetes.io/change-cause"] = "a try";
  EXPECT_EQ(cause_of(Choose(Content("LRU"))), "a try");
  Add("0000000000", 4, Content("Pin"));
  const RevisionChoice later = Choose(Content("Pin"));
  ASSERT_TRUE(later.change) << "it was annotated after the change";
  EXPECT_EQ(cause_of(later), "a try");
  EXPECT_EQ(later.change->object["revision"], 4);
  revisions_.back().change_cause = "a try";
  EXPECT_FALSE(Choose(Content("Pin")).change);
}

TEST_F(Revisions, ThatOfAPlanOfTheSameNameBeforeIsAdopted) {
  Add("0000000000", 4, Content("Pin"), "old-uid");
  const RevisionChoice choice = Choose(Content("Pin"));
  ASSERT_TRUE(choice.change);
  EXPECT_EQ(kube::ControllerOf(choice.change->object)->uid, "plan-uid");
  EXPECT_EQ(choice.change->object["revision"], 4);
}

TEST_F(Revisions, AnotherContentOfTheSameNameIsACollision) {
  Add(RevisionHash(Content("LRU"), 0), 1, Content("Pin"));
  const RevisionChoice choice = Choose(Content("LRU"));
  EXPECT_EQ(choice.collisions, 1);
  EXPECT_EQ(choice.hash, RevisionHash(Content("LRU"), 1));
  EXPECT_NE(choice.hash, RevisionHash(Content("LRU"), 0));
}

TEST_F(Revisions, TheLowestNumbersGoButNoneInUseAndNoneOfOthers) {
  for (std::int64_t number = 0; number < 6; ++number)
    Add(std::string(10, static_cast<char>('0' + number)), number, Json(number),
        number == 3 ? "another" : "plan-uid");
  const auto removals = SurplusRevisions(plan_, revisions_, {"0000000000", "5555555555"}, 1);
  ASSERT_EQ(removals.size(), 2U);
  EXPECT_EQ(removals[0].key.name, "mine-1111111111");
  EXPECT_EQ(removals[0].uid, "uid-1111111111");
  EXPECT_EQ(removals[1].key.name, "mine-2222222222");
  EXPECT_TRUE(SurplusRevisions(plan_, revisions_, {}, 1000).empty());
}

TEST_F(Revisions, AreFoundByTheirPlanAndSortedByNumber) {
  kube::ObjectCache cache({{kByPlan, RevisionsByPlan()}});
  for (const auto& [hash, number] : {std::pair("aaaaaaaaaa", 2), std::pair("bbbbbbbbbb", 1)}) {
    RevisionChoice choice = Choose(Content("Pin"));
    Json object = choice.change->object;
    object["metadata"]["name"] = std::string("mine-") + hash;
    object["revision"] = number;
    cache.Put(kube::KeyOf(object), object);
  }
  const auto found = RevisionsOf({.ns = "vision", .name = "mine"}, cache);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].hash(), "bbbbbbbbbb");
  EXPECT_EQ(found[1].number, 2);
  EXPECT_TRUE(RevisionsOf({.ns = "vision", .name = "min"}, cache).empty());
}

std::string FaultOf(const char* spec) {
  Json plan = kube::MakeObject(api::kCachePlans, {.ns = "vision", .name = "mine"});
  plan["spec"] = Json::parse(spec);
  plan["spec"]["dataset"] = "imagenet";
  const auto parsed = api::ParseCachePlanSpec(plan);
  return parsed ? "" : std::string(parsed.error().message());
}

TEST(CachePlanSpec, ReadsHowItIsRolledOut) {
  Json plan = kube::MakeObject(api::kCachePlans, {.ns = "vision", .name = "mine"});
  plan["spec"] = Json::parse(R"({"dataset": "imagenet", "rollout": {
      "strategy": "AllAtOnce", "activateAt": "Now", "partition": 2, "maxUnavailable": 3,
      "paused": true, "acknowledge": true, "progressDeadlineSeconds": 60, "epochDeadlineSeconds": 3600,
      "restartedAt": "2027-01-15T08:00:00Z",
      "abort": {"whenBelowPredictedBy": "0.125", "whenWorseThanPreviousBy": "1", "after": 4}},
      "goal": {"waiting": "2%"}, "revisionHistoryLimit": 0})");
  const auto spec = api::ParseCachePlanSpec(plan);
  ASSERT_TRUE(spec) << spec.error().message();
  EXPECT_EQ(spec->rollout,
            (coordination::RolloutKnobs{.all_at_once = true,
                                        .at_epoch_boundary = false,
                                        .paused = true,
                                        .acknowledge = true,
                                        .partition = 2,
                                        .max_unavailable = {.amount = 3, .percent = false},
                                        .below_predicted_millionths = 125'000,
                                        .worse_than_previous_millionths = 1'000'000,
                                        .after = 4,
                                        .progress_deadline_seconds = 60,
                                        .epoch_deadline_seconds = 3600,
                                        .restarted_at = "2027-01-15T08:00:00Z"}));
  EXPECT_EQ(spec->revision_history, 0);
  EXPECT_EQ(spec->goal, *dataset::ParseWaitingGoal("2%"));
  EXPECT_FALSE(api::RevisionContent(*spec).contains("goal")) << "it is no part of a revision";
}

TEST(CachePlanSpec, NamesEveryFaultWithItsField) {
  EXPECT_EQ(FaultOf("{}"), "");
  for (const auto& [spec, field] : {
           std::pair(R"({"rollout": {"maxUnavailable": "0%"}})", "spec.rollout.maxUnavailable"),
           std::pair(R"({"rollout": {"maxUnavailable": 0}})", "spec.rollout.maxUnavailable"),
           std::pair(R"({"rollout": {"maxUnavailable": "101%"}})", "spec.rollout.maxUnavailable"),
           std::pair(R"({"rollout": {"partition": -1}})", "spec.rollout.partition"),
           std::pair(R"({"rollout": {"paused": "yes"}})", "spec.rollout.paused"),
           std::pair(R"({"rollout": {"restartedAt": "now"}})", "spec.rollout.restartedAt"),
           std::pair(R"({"rollout": {"progressDeadlineSeconds": 0}})", "progressDeadlineSeconds"),
           std::pair(R"({"rollout": {"epochDeadlineSeconds": 0}})", "epochDeadlineSeconds"),
           std::pair(R"({"rollout": {"abort": {"after": 0}}})", "spec.rollout.abort.after"),
           std::pair(R"({"rollout": {"abort": {"whenBelowPredictedBy": "1.1"}}})",
                     "BelowPredictedBy"),
           std::pair(R"({"rollout": {"abort": {"whenBelowPredictedBy": "-0"}}})",
                     "BelowPredictedBy"),
           std::pair(R"({"rollout": {"abort": {"whenBelowPredictedBy": "0.1x"}}})",
                     "BelowPredicted"),
           std::pair(R"({"rollout": {"abort": {"whenBelowPredictedBy": "."}}})",
                     "BelowPredictedBy"),
           std::pair(R"({"jobs": [{}]})", "spec.jobs[0].name"),
           std::pair(R"({"jobs": [{"name": "a"}, {"name": "a"}]})", "spec.jobs[1].name"),
           std::pair(R"({"jobs": [{"name": "a", "sampler": {"worldSize": 65537}}]})", "worldSize"),
           std::pair(R"({"jobs": [{"name": "a", "sampler": {"kind": "X"}}]})", "sampler.kind"),
           std::pair(R"({"goal": {"waiting": "100%"}})", "spec.goal.waiting"),
           std::pair(R"({"goal": {"cost": "-1"}})", "spec.goal.cost"),
           std::pair(R"({"goal": {"waiting": "2%", "cost": "1"}})", "spec.goal.cost"),
           std::pair(R"({"revisionHistoryLimit": 1001})", "spec.revisionHistoryLimit"),
       })
    EXPECT_NE(FaultOf(spec).find(field), std::string::npos) << spec << ": " << FaultOf(spec);
}

TEST(CachePlanSpec, JobsAreRecipesAsClientsAnnounceThem) {
  const auto spec = api::ParseRevisionContent(Json::parse(
      R"({"jobs": [{"name": "a", "sampler": {"seed": 3, "worldSize": 8, "epochs": 90}},
                   {"name": "b", "sampler": {"kind": "TorchRandom", "seed": 4}},
                   {"name": "c", "sampler": {"kind": "TorchRandom", "shuffle": false}}]})"));
  ASSERT_TRUE(spec);
  const auto recipes = api::RecipesOf(spec->jobs);
  ASSERT_EQ(recipes.size(), 3U);
  EXPECT_EQ(recipes[0].job, "a");
  EXPECT_EQ(recipes[0].recipe,
            (coordination::Recipe{.sampler_kind = 1, .seed = 3, .world = 8, .passes = 90}));
  EXPECT_EQ(recipes[1].recipe, (coordination::Recipe{.sampler_kind = 2, .seed = 4, .passes = 1}));
  EXPECT_EQ(recipes[2].recipe, (coordination::Recipe{.sampler_kind = 0, .passes = 1}));
}

}  // namespace
}  // namespace optcache::reconcile
