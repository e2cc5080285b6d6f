#include "cache-node/planning/following.h"

#include <gtest/gtest.h>

namespace optcache::node {
namespace {

using coordination::DatasetState;
using coordination::Recipe;
using coordination::Retention;
using coordination::StreamState;

StreamState Stream(StreamId id, bool known) {
  return {.id = id,
          .recipe = {.sampler_kind = 1, .size = 10, .known = known},
          .node_of_rank = {1},
          .complete = true};
}

// Members 1 to 3, of which 2 follows an update; stream 7 announces its order, 8 does not.
DatasetState Mixed() {
  DatasetState state{.name = "a/b",
                     .revision = "before",
                     .retention = Retention::kPin,
                     .planned = {.counter = 4},
                     .capacities = {{1, 100}, {2, 200}, {3, 300}},
                     .streams = {Stream(7, true), Stream(8, false)}};
  state.update = {.revision = {.name = "after",
                               .retention = Retention::kOptimal,
                               .objective = coordination::Objective::kRequests},
                  .members = {2}};
  return state;
}

TEST(Following, MembersOfTheUpdateFollowItAndPlanWithTheirOwnMemory) {
  const DatasetState state = Mixed();
  const Following updated = Follow(state, 2);
  EXPECT_EQ(updated.revision, "after");
  EXPECT_TRUE(updated.HasPlan());
  EXPECT_EQ(updated.objective, coordination::Objective::kRequests);
  EXPECT_EQ(updated.capacities,
            (std::vector<coordination::MemberCapacity>{{1, 0}, {2, 200}, {3, 0}}));
  const Following own = Follow(state, 3);
  EXPECT_EQ(own.revision, "before");
  EXPECT_FALSE(own.HasPlan());
  EXPECT_EQ(own.retention, Retention::kPin);
  EXPECT_EQ(own.capacities,
            (std::vector<coordination::MemberCapacity>{{1, 100}, {2, 0}, {3, 300}}));
  EXPECT_EQ(Follow(state, 9).revision, "before") << "it reads, and holds nothing";
}

TEST(Following, ARevisionMakesOrdersKnownAndUnknown) {
  DatasetState state = Mixed();
  EXPECT_EQ(Follow(state, 2).streams, std::vector{state.streams[0]});
  const Recipe known{.sampler_kind = 1, .size = 10, .seed = 3};
  state.streams[1].traces = {{.pass = 0, .length = 10, .digest = "ab"}};
  state.update->revision.recipes = {{.stream = 7, .recipe = {.known = false}},
                                    {.stream = 8, .recipe = known}};
  const Following updated = Follow(state, 2);
  ASSERT_EQ(updated.streams.size(), 1U);
  EXPECT_EQ(updated.streams[0].id, 8U);
  EXPECT_EQ(updated.streams[0].recipe, known);
  EXPECT_TRUE(updated.streams[0].traces.empty()) << "it is known farther than they go";
  EXPECT_EQ(Follow(state, 1).streams.size(), 2U) << "lists are an order, too";
}

TEST(Following, WhenAllHaveGoneOverTheUpdateBecomesTheDatasetsOwnAndNothingIsOther) {
  DatasetState state = Mixed();
  state.update->revision.recipes = {{.stream = 8, .recipe = {.sampler_kind = 1, .size = 10}}};
  const Following alone = Follow(state, 2);
  state.update->members = {1, 2, 3};
  const Following last = Follow(state, 2);
  EXPECT_FALSE(last.IsLike(alone)) << "others' memory counts now";
  EXPECT_TRUE(Follow(state, 1).IsLike(last));

  DatasetState after = state;
  after.revision = "after, by another name";
  after.retention = state.update->revision.retention;
  after.objective = state.update->revision.objective;
  after.streams[1].recipe = state.update->revision.recipes[0].recipe;
  after.update.reset();
  EXPECT_TRUE(Follow(after, 2).IsLike(last));
  EXPECT_EQ(Follow(after, 2).revision, "after, by another name");
}

TEST(Following, OnTrialAllMembersFollowWithWhatIsExpectedBeside) {
  const DatasetState state = Mixed();
  coordination::TrialState trial{.id = "after@update", .revision = state.update->revision};
  trial.expected = {Stream(3, true)};
  const Following following = FollowOnTrial(state, trial);
  EXPECT_EQ(following.capacities, state.capacities);
  ASSERT_EQ(following.streams.size(), 2U);
  EXPECT_EQ(following.streams[0].id, 3U);
  EXPECT_EQ(following.streams[1].id, 7U);
}

}  // namespace
}  // namespace optcache::node
