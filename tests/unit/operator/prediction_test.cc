#include "operator/reconcile/cacheplan/prediction.h"

#include <set>

#include <gtest/gtest.h>

#include "operator/api/resources.h"

namespace optcache::reconcile {
namespace {

using coordination::RolloutNode;
using kube::Json;

constexpr const char* kCurrent = "0123456789";

Json Asking(const std::string& annotation) {
  Json plan = kube::MakeObject(api::kCachePlans, {.ns = "vision", .name = "mine"});
  plan["metadata"]["annotations"] = {{kPredictAnnotation, annotation}};
  return plan;
}

PredictionQuestion Question() {
  return QuestionOf(Asking(R"({"id": "a1", "spec": {"retention": "Pin"}})")).value();
}

RolloutNode Deriving(const std::string& name, const PredictionQuestion& question,
                     ByteCount own = 0) {
  RolloutNode node{.name = name};
  node.trials.push_back(
      {.id = question.trial,
       .planned = {1, 1},
       .all = {.reads = 100, .store_reads = 40, .store_bytes = 4000, .moved_bytes = 7},
       .own = {.store_bytes = own}});
  node.trials.push_back({.id = PresentTrial(question, kCurrent),
                         .planned = {1, 1},
                         .all = {.reads = 100, .store_reads = 30, .store_bytes = 3000}});
  return node;
}

RolloutNode Answering(const std::string& name, ByteCount own) {
  return Deriving(name, Question(), own);
}

TEST(Prediction, NobodyAsks) {
  EXPECT_FALSE(QuestionOf(kube::MakeObject(api::kCachePlans, {.ns = "v", .name = "m"})));
}

TEST(Prediction, MissingFieldsHaveTheirDefaults) {
  const PredictionQuestion question = Question();
  EXPECT_EQ(question.error, "");
  EXPECT_EQ(question.spec.retention, coordination::Retention::kPin);
  EXPECT_EQ(question.spec.objective, coordination::Objective::kBytes);
  EXPECT_TRUE(question.trial.ends_with("@predict-a1"));
}

TEST(Prediction, AnotherContentIsAnotherTrial) {
  EXPECT_NE(Question().trial, QuestionOf(Asking(R"({"id": "a1", "spec": {}})"))->trial);
}

TEST(Prediction, WhatCannotBeReadIsAnsweredWithAnError) {
  for (const std::string& text :
       {std::string("yes"), std::string("[]"), std::string(R"({"spec": {}})"),
        std::string(R"({"id": "a1", "spec": {"retention": "Belady"}})"),
        std::string(R"({"id": "a1", "spec": []})"), R"({"id": ")" + std::string(64, 'x') + R"("})",
        std::string(40'000, ' ')}) {
    const auto question = QuestionOf(Asking(text));
    ASSERT_TRUE(question);
    const Json answer = AnswerOf(*question, {Answering("a", 1)}, kCurrent);
    EXPECT_NE(kube::TextAt(answer, "/error").find(kPredictAnnotation), std::string::npos) << text;
    EXPECT_FALSE(answer.contains("hitRatio"));
  }
}

TEST(Prediction, HasTheFiguresOfAllNodesAndOfEach) {
  const Json answer = AnswerOf(Question(), {Answering("a", 2500), Answering("b", 1500)}, kCurrent);
  EXPECT_EQ(answer, Json::parse(R"({"id": "a1", "hitRatio": "0.600", "storeBytesPerEpoch": 4000,
      "movedBytesPerEpoch": 7, "revision": ")" +
                                Question().trial.substr(0, 10) + R"(", "worse": true,
      "current": {"hitRatio": "0.700", "storeBytesPerEpoch": 3000, "movedBytesPerEpoch": 0},
      "nodes": [{"name": "a", "storeBytes": 2500, "movedBytes": 0},
                {"name": "b", "storeBytes": 1500, "movedBytes": 0}]})"));
}

TEST(Prediction, IsOnItsWayUntilAllNodesHaveDerivedIt) {
  EXPECT_EQ(AnswerOf(Question(), {Answering("a", 1), {.name = "b"}}, kCurrent),
            Json::parse(R"({"id": "a1"})"));
}

// A job that begins between two nodes' derivations, or between those of the two revisions.
TEST(Prediction, IsAskedForAgainWhereNodesWentByDifferentInputs) {
  Json plan = Asking(R"({"id": "a1", "spec": {"retention": "Pin"}})");
  std::set<std::string> trials;
  for (const std::size_t late : {0U, 1U, 0U}) {
    const PredictionQuestion question = *QuestionOf(plan);
    EXPECT_TRUE(trials.insert(question.trial).second) << "nodes keep what they derived";
    EXPECT_TRUE(trials.insert(PresentTrial(question, kCurrent)).second);
    std::vector<RolloutNode> nodes = {Deriving("a", question), Deriving("b", question)};
    nodes[1].trials[late].planned = {1, 2};
    plan["status"]["prediction"] = AnswerOf(question, nodes, kCurrent);
    EXPECT_EQ(plan["status"]["prediction"], Json({{"id", "a1"}, {"tries", question.tries + 1}}));
  }
  const PredictionQuestion last = *QuestionOf(plan);
  const Json answer = AnswerOf(last, {Deriving("a", last), Deriving("b", last)}, kCurrent);
  EXPECT_EQ(answer["hitRatio"], "0.600");
  EXPECT_EQ(answer["current"]["hitRatio"], "0.700");
  RolloutNode late = Deriving("b", last);
  late.trials[0].planned = late.trials[1].planned = {1, 3};
  plan["status"]["prediction"] = AnswerOf(last, {Deriving("a", last), late}, kCurrent);
  EXPECT_NE(kube::TextAt(plan, "/status/prediction/error").find("different inputs"),
            std::string::npos);
  EXPECT_FALSE(plan["status"]["prediction"].contains("hitRatio"));
  EXPECT_TRUE(IsAnswered(plan, last));
  plan["metadata"]["annotations"] = {{kPredictAnnotation, R"({"id": "a1", "spec": {}})"}};
  EXPECT_EQ(QuestionOf(plan)->tries, 0U) << "another content is asked for";
  EXPECT_EQ(QuestionOf(Asking(R"({"id": "a2", "spec": {}})"))->tries, 0U);
}

TEST(Prediction, SaysWhyThereIsNone) {
  RolloutNode failed = Answering("b", 1);
  failed.trials[0].error = "out of memory";
  EXPECT_EQ(kube::TextAt(AnswerOf(Question(), {Answering("a", 1), failed}, kCurrent), "/error"),
            "node b could not derive it: out of memory");
  RolloutNode without_present = Answering("b", 1);
  without_present.trials[1].error = "300 ordered streams";
  const Json half = AnswerOf(Question(), {without_present}, kCurrent);
  EXPECT_EQ(half["hitRatio"], "0.600");
  EXPECT_EQ(half["currentError"], "node b could not derive it: 300 ordered streams");
  EXPECT_FALSE(half.contains("current") || half.contains("worse"));
  EXPECT_NE(kube::TextAt(AnswerOf(Question(), {}, kCurrent), "/error"), "");
  RolloutNode idle = Answering("a", 1);
  idle.trials[0].all = {};
  EXPECT_NE(kube::TextAt(AnswerOf(Question(), {idle}, kCurrent), "/error").find("no job reads"),
            std::string::npos);
}

TEST(Prediction, ForAReadDecidesWhatIsWorse) {
  RolloutNode node = Answering("a", 1);
  node.trials[0].all = {.reads = 200, .store_bytes = 6030};  // 30.15 for a read; now 30
  EXPECT_EQ(AnswerOf(Question(), {node}, kCurrent)["worse"], false);
  node.trials[0].all.store_bytes = 6031;
  EXPECT_EQ(AnswerOf(Question(), {node}, kCurrent)["worse"], true);
}

TEST(Prediction, IsAnsweredOnceForThatContent) {
  Json plan = Asking(R"({"id": "a1", "spec": {"retention": "Pin"}})");
  EXPECT_FALSE(IsAnswered(plan, Question()));
  plan["status"]["prediction"] = AnswerOf(Question(), {Answering("a", 1), {.name = "b"}}, kCurrent);
  EXPECT_FALSE(IsAnswered(plan, Question())) << "on its way";
  plan["status"]["prediction"] = AnswerOf(Question(), {}, kCurrent);
  EXPECT_FALSE(IsAnswered(plan, Question())) << "it may be placed yet";
  plan["status"]["prediction"] = AnswerOf(Question(), {Answering("a", 1)}, kCurrent);
  EXPECT_TRUE(IsAnswered(plan, Question()));
  EXPECT_FALSE(IsAnswered(plan, *QuestionOf(Asking(R"({"id": "a1", "spec": {}})"))));
  EXPECT_FALSE(
      IsAnswered(plan, *QuestionOf(Asking(R"({"id": "a2", "spec": {"retention": "Pin"}})"))));
}

TEST(Prediction, NamesAtMostSixtyFourNodes) {
  std::vector<RolloutNode> nodes;
  for (int i = 0; i < 70; ++i)
    nodes.push_back(Answering("n" + std::to_string(i), 1));
  EXPECT_EQ(AnswerOf(Question(), nodes, kCurrent)["nodes"].size(), 64U);
}

}  // namespace
}  // namespace optcache::reconcile
