#include "coordination/revisions.h"

#include <gtest/gtest.h>

namespace optcache::coordination {
namespace {

StreamState Stream(StreamId id, std::string name, std::uint32_t world) {
  return {.id = id, .name = std::move(name), .recipe = {.world = world, .known = false}};
}

TEST(Revisions, TheJobIsTheSecondPartOfAStreamsName) {
  EXPECT_EQ(JobOf("vision/resnet/imagenet/train"), "resnet");
  EXPECT_EQ(JobOf("vision/resnet"), "resnet");
  EXPECT_EQ(JobOf("vision/resnet.v2.0f3a4a6a/imagenet/train"), "resnet.v2");
  EXPECT_EQ(JobOf("vision/resnet.0f3a4a6/imagenet/train"), "resnet.0f3a4a6");
  EXPECT_EQ(JobOf("vision/.0f3a4a6a/imagenet/train"), ".0f3a4a6a");
  EXPECT_EQ(JobOf("vision"), "");
  EXPECT_EQ(JobOf(""), "");
}

TEST(Revisions, AStreamsNameHasFourParts) {
  const StreamNameParts parts = PartsOf("speech/resnet.0f3a4a6a/vision:imagenet/train/first");
  EXPECT_EQ(parts.name_space, "speech");
  EXPECT_EQ(parts.owner, "resnet.0f3a4a6a");
  EXPECT_EQ(parts.dataset, "vision:imagenet");
  EXPECT_EQ(parts.loader, "train/first");
  EXPECT_EQ(PartsOf("speech/").name_space, "speech");
  EXPECT_EQ(PartsOf("speech//imagenet").dataset, "imagenet");
  EXPECT_EQ(PartsOf("speech/resnet").loader, "");
}

TEST(Revisions, ARecipeIsForItsJobAndWorld) {
  const std::vector<JobRecipe> jobs = {{.job = "a", .recipe = {.seed = 1, .world = 2}},
                                       {.job = "b", .recipe = {.seed = 2, .world = 4}}};
  EXPECT_EQ(RecipeOf(jobs, Stream(1, "ns/b/d/train", 4)), &jobs[1].recipe);
  EXPECT_EQ(RecipeOf(jobs, Stream(1, "ns/b/d/train", 2)), nullptr);
  EXPECT_EQ(RecipeOf(jobs, Stream(1, "ns/c/d/train", 2)), nullptr);
}

TEST(Revisions, SaysHowAJobDiffersFromWhatIsWrittenOfIt) {
  std::vector<JobRecipe> jobs = {
      {.job = "b", .recipe = {.sampler_kind = 1, .seed = 5, .world = 2}}};
  StreamState stream = Stream(1, "ns/b/d/train", 2);
  stream.recipe = {.sampler_kind = 1, .size = 100, .seed = 5, .world = 2};
  EXPECT_EQ(DifferenceFrom(jobs, stream), "");
  stream.recipe.seed = 6;
  EXPECT_EQ(DifferenceFrom(jobs, stream), "seed: 5 and 6 (CachePlan, then the job)");
  stream.recipe.world = 3;
  EXPECT_EQ(DifferenceFrom(jobs, stream), "ranks: 2 (CachePlan), 3 (job)");
  stream.name = "ns/c/d/train";
  EXPECT_EQ(DifferenceFrom(jobs, stream), "");
}

TEST(Revisions, ARecipeTakesThePlaceOfItsStreams) {
  const std::vector<StreamState> streams = {Stream(1, "a", 2), Stream(2, "b", 2)};
  std::vector<StreamState> wanted = streams;
  wanted[1].recipe.seed = 9;
  const std::vector<StreamRecipe> recipes = {{.stream = 2, .recipe = wanted[1].recipe}};
  EXPECT_EQ(StreamsOf({.name = "r", .recipes = recipes}, streams), wanted);
  EXPECT_EQ(StreamsOf({.name = "own"}, streams), streams);
}

TEST(Revisions, MembersOfTheUpdateFollowItAndOthersTheDatasetsOwn) {
  const Assignment assignment{
      .own = {.name = "own"},
      .update = UpdateState{.revision = {.name = "new"}, .members = {2, 5}}};
  EXPECT_EQ(FollowedBy(1, assignment).name, "own");
  EXPECT_EQ(FollowedBy(5, assignment).name, "new");
  EXPECT_EQ(FollowedBy(5, {.own = {.name = "own"}, .update = {}}).name, "own");
}

TEST(Revisions, AJobThatReadsIsNotExpected) {
  const std::vector<JobRecipe> jobs = {{.job = "reads", .recipe = {.world = 2}},
                                       {.job = "later", .recipe = {.world = 3}}};
  const auto expected = ExpectedStreams(jobs, "ns/d", {Stream(1, "ns/reads/d/train", 2)},
                                        {{.member = 4, .bytes = 1}, {.member = 6, .bytes = 1}});
  ASSERT_EQ(expected.size(), 1U);
  EXPECT_EQ(expected[0].name, "ns/later/d/expected");
  EXPECT_EQ(expected[0].node_of_rank, (std::vector<MemberId>{4, 6, 4}));
  EXPECT_TRUE(expected[0].complete);
  EXPECT_TRUE(ExpectedStreams(jobs, "ns/d", {}, {}).empty()) << "it is placed nowhere";
}

}  // namespace
}  // namespace optcache::coordination
