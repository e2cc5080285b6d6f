// What a CachePlan begins with: it is in force at once, and what it is worth is found out later.

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rollout_story.h"

namespace optcache::coordination {
namespace {

using testing::IsEmpty;

TEST(FirstRevision, IsCurrentAtOnce) {
  RolloutStory story;
  story.Place({"a"});
  ASSERT_TRUE(story.Step());
  EXPECT_EQ(story.state.current, "old");
  EXPECT_EQ(story.Phase(), "Complete");
  story.StepUntilStill();
  EXPECT_EQ(story.Phase(), "Complete");
}

TEST(FirstRevision, IsPredictedOnceForTheJobsThatRead) {
  RolloutStory story;
  story.inputs.is_tried = true;
  const auto trials = [&] { return OrdersOf(story.state, story.inputs).trials; };
  story.Place({"a", "b"});
  story.Run();
  story.Read(1, 0);
  story.inputs.streams[0].gathering = true;
  story.Run();
  EXPECT_THAT(trials(), IsEmpty()) << "some of its ranks are still to come";

  story.inputs.streams[0].gathering = false;
  ASSERT_TRUE(story.Step());
  ASSERT_EQ(trials().size(), 1U);
  EXPECT_EQ(trials()[0].second, "old");
  const std::string first = trials()[0].first;
  story.Answer(story.Node("a"));
  EXPECT_FALSE(story.Step());
  story.Answer(story.Node("b"));
  ASSERT_TRUE(story.Step());
  EXPECT_THAT(trials(), IsEmpty());
  EXPECT_EQ(story.state.predicted->hit_permille, 400U);
  EXPECT_EQ(ReportOf(story.state, story.inputs).predicted, story.state.predicted);

  story.EndPass();
  story.inputs.nodes.pop_back();
  story.StepUntilStill();
  EXPECT_THAT(trials(), IsEmpty()) << "the same jobs read";
  story.predicted["old"] = 500;
  story.Read(2, 0);
  ASSERT_TRUE(story.Step());
  EXPECT_NE(trials()[0].first, first);
  EXPECT_FALSE(story.state.predicted) << "until nodes have answered";
  story.Run();
  EXPECT_EQ(story.state.predicted->hit_permille, 500U);
  story.predicted["old"] = 700;
  story.inputs.memory = 6400;
  story.Run();
  EXPECT_EQ(story.state.predicted->hit_permille, 300U) << "with other memory";
  EXPECT_EQ(story.Phase(), "Complete");
}

// Else memory that moves faster than nodes derive would have them derive for ever.
TEST(FirstRevision, IsNotPredictedAgainBeforeNodesHaveAnswered) {
  RolloutStory story;
  story.inputs.is_tried = true;
  story.inputs.memory = 6400;
  story.Place({"a"});
  story.StepUntilStill();
  story.Read(1, 0);
  story.StepUntilStill();
  const RolloutOrders asked = OrdersOf(story.state, story.inputs);
  ASSERT_EQ(asked.trials.size(), 1U);
  story.inputs.memory = 3200;
  story.StepUntilStill();
  EXPECT_EQ(OrdersOf(story.state, story.inputs), asked);
  story.Answer(story.Node("a"));
  story.StepUntilStill();
  EXPECT_NE(OrdersOf(story.state, story.inputs).trials, asked.trials) << "for the memory of now";
  story.Run();
  EXPECT_TRUE(ReportOf(story.state, story.inputs).predicted);
}

TEST(FirstRevision, WaitsForNodesThatAreSilent) {
  RolloutStory story;
  story.inputs.is_tried = true;
  story.Place({"a"});
  story.Read(1, 0);
  story.Run();
  ASSERT_TRUE(story.state.predicted);
  story.Read(2, 0);
  ASSERT_TRUE(story.Step());
  const auto nodes = std::exchange(story.inputs.nodes, {});
  story.StepUntilStill();
  EXPECT_TRUE(story.state.forecast->awaited);
  story.inputs.nodes = nodes;
  EXPECT_EQ(OrdersOf(story.state, story.inputs).trials.size(), 1U);
}

TEST(FirstRevision, IsNotTriedWherePlansForetellIt) {
  RolloutStory story;
  story.Place({"a"});
  story.Read(1, 0);
  story.Run();
  EXPECT_THAT(OrdersOf(story.state, story.inputs).trials, IsEmpty());
  EXPECT_FALSE(story.state.forecast);
}

// Nodes that cannot, and jobs in an order that nobody knows: nothing is predicted, nor asked again.
TEST(FirstRevision, WhatCannotBePredictedIsTriedOnce) {
  RolloutStory story;
  story.inputs.is_tried = true;
  story.Place({"a"});
  story.Run();
  story.Read(1, 0);
  story.Step();
  story.AllAnswer();
  story.Node("a").trials[0].error = "no memory";
  story.Step();
  EXPECT_FALSE(story.state.predicted);
  EXPECT_THAT(OrdersOf(story.state, story.inputs).trials, IsEmpty());
  story.Run();
  EXPECT_FALSE(story.state.predicted);
}

}  // namespace
}  // namespace optcache::coordination
