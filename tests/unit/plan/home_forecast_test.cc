#include "plan/home_forecast.h"

#include <numeric>

#include <gtest/gtest.h>

namespace optcache::plan {
namespace {

constexpr std::uint32_t kFewSamples = 10;

// Each pass reads 0 to 9, by two ranks on two nodes.
plan::Order InTurn(StreamId /*stream*/, PassNumber pass) {
  if (pass >= 4) return nullptr;
  std::vector<SampleId> ids(kFewSamples);
  std::iota(ids.begin(), ids.end(), SampleId{0});
  return std::make_shared<const std::vector<SampleId>>(ids);
}

// Samples 0 to 4 are at home at node 0, where the even ones are read.
HomeInputs TwoNodes(HomeRule rule, ByteCount capacity) {
  HomeInputs inputs{.rule = rule,
                    .sizes = Sizes::Equal(kFewSamples, 100),
                    .capacities = {capacity, capacity},
                    .streams = {{.id = 7, .node_of_rank = {0, 1}}}};
  for (SampleId id = 0; id < kFewSamples; ++id)
    inputs.homes.push_back(id < 5 ? 0 : 1);
  return inputs;
}

StreamForecast NextOf(HomeForecast& forecast) {
  return forecast.Next().value()[7];
}

TEST(HomeForecast, WhatLiesElsewhereThanAtItsHomeStaysByPin) {
  HomeInputs inputs = TwoNodes(HomeRule::kPin, 300);
  inputs.base.assign(kFewSamples, kNoNode);
  for (const SampleId id : {7U, 8U, 9U})
    inputs.base[id] = 0;  // which has no more room
  auto forecast = HomeForecast::Make(inputs, InTurn, 1).value();
  const StreamForecast first = NextOf(forecast);
  // 7, 8 and 9 are found; 0 to 4 find no room at node 0; 5 and 6 are kept at node 1.
  EXPECT_EQ(first.pass_reads, kFewSamples);
  EXPECT_EQ(first.all, (NodeShare{.reads = 10,
                                  .store_reads = 7,
                                  .read_bytes = 1000,
                                  .store_bytes = 700,
                                  .moved_bytes = 100}));
  EXPECT_EQ(first.own,
            (NodeShare{.reads = 5, .store_reads = 3, .read_bytes = 500, .store_bytes = 300}));
  EXPECT_EQ(NextOf(forecast).all.store_reads, 5U);
  EXPECT_EQ(forecast.holders(),
            (Holders{kNoNode, kNoNode, kNoNode, kNoNode, kNoNode, 1, 1, 0, 0, 0}));
}

TEST(HomeForecast, LruLetsGoWhatWasUnusedLongestWhoeverKeptIt) {
  HomeInputs inputs = TwoNodes(HomeRule::kLru, 300);
  inputs.base.assign(kFewSamples, kNoNode);
  for (const SampleId id : {7U, 8U, 9U})
    inputs.base[id] = 0;
  auto forecast = HomeForecast::Make(inputs, InTurn, 0).value();
  EXPECT_EQ(NextOf(forecast).all.store_reads, 10U) << "0 to 4 have taken the room of 7 to 9";
  EXPECT_EQ(forecast.holders(), (Holders{kNoNode, kNoNode, 0, 0, 0, kNoNode, kNoNode, 1, 1, 1}));
}

TEST(HomeForecast, NothingIsKeptByNone) {
  HomeInputs inputs = TwoNodes(HomeRule::kNone, 300);
  inputs.homes.clear();
  inputs.base.assign(kFewSamples, 1);
  auto forecast = HomeForecast::Make(inputs, InTurn, 0).value();
  EXPECT_EQ(NextOf(forecast).all.store_reads, 0U);
  EXPECT_EQ(NextOf(forecast).all.store_reads, 10U);
}

TEST(HomeForecast, RanksWithoutANodeReadTheStore) {
  HomeInputs inputs = TwoNodes(HomeRule::kPin, 1000);
  inputs.streams[0].node_of_rank = {0, kNoNode};
  auto forecast = HomeForecast::Make(inputs, InTurn, 0).value();
  EXPECT_EQ(NextOf(forecast).all.store_reads, 10U);
  EXPECT_EQ(NextOf(forecast).all.store_reads, 5U);
}

TEST(HomeForecast, BeginsAtTheCutAndEndsWithTheStream) {
  HomeInputs inputs = TwoNodes(HomeRule::kPin, 1000);
  inputs.streams[0].pass = 2;
  inputs.streams[0].position = 6;
  auto forecast = HomeForecast::Make(inputs, InTurn, 0).value();
  EXPECT_EQ(NextOf(forecast).all.reads, 10U) << "6 to 9, then 0 to 5";
  EXPECT_EQ(NextOf(forecast).all.reads, 4U);
  EXPECT_TRUE(forecast.Next().value().empty());
  inputs.streams[0].pass = 4;
  EXPECT_TRUE(HomeForecast::Make(inputs, InTurn, 0).value().Next().value().empty());
}

TEST(HomeForecast, PassesThatStopEarlyAreShorter) {
  HomeInputs inputs = TwoNodes(HomeRule::kPin, 1000);
  inputs.streams[0].stops_at = 4;
  auto forecast = HomeForecast::Make(inputs, InTurn, 0).value();
  const StreamForecast first = NextOf(forecast);
  EXPECT_EQ(first.pass_reads, 4U);
  EXPECT_EQ(first.all.store_reads, 4U);
  EXPECT_EQ(NextOf(forecast).all.store_reads, 0U);
}

TEST(HomeForecast, OnePassIsInProportion) {
  const NodeShare whole{
      .reads = 30, .store_reads = 9, .read_bytes = 3000, .store_bytes = 1001, .moved_bytes = 7};
  const PassForecast pass = OnePassOfEach({
      {1, {.pass_reads = 10, .all = whole, .own = {.reads = 15, .store_reads = 2}}},
      {2, {.pass_reads = 60, .all = whole, .own = {}}},
      {3, {.pass_reads = 5, .all = {}, .own = {}}},
  });
  EXPECT_EQ(pass.all, (NodeShare{.reads = 10 + 60,
                                 .store_reads = 3 + 18,
                                 .read_bytes = 1000 + 6000,
                                 .store_bytes = 333 + 2002,
                                 .moved_bytes = 2 + 14}));
  EXPECT_EQ(pass.own, (NodeShare{.reads = 5, .store_reads = 0}));
}

TEST(HomeForecast, WhatDoesNotFitTogetherIsRefused) {
  const auto refused = [](const HomeInputs& inputs) {
    return HomeForecast::Make(inputs, InTurn, 0).error().code() == Code::kInvalidArgument;
  };
  HomeInputs inputs = TwoNodes(HomeRule::kPin, 100);
  inputs.homes.pop_back();
  EXPECT_TRUE(refused(inputs));
  inputs = TwoNodes(HomeRule::kPin, 100);
  inputs.base.assign(kFewSamples, 2);
  EXPECT_TRUE(refused(inputs));
  inputs = TwoNodes(HomeRule::kPin, 100);
  inputs.streams[0].node_of_rank.clear();
  EXPECT_TRUE(refused(inputs));
  inputs = TwoNodes(HomeRule::kPin, 100);
  inputs.sizes = Sizes::Equal(5, 100);
  inputs.homes.resize(5);
  auto forecast = HomeForecast::Make(inputs, InTurn, 0).value();
  EXPECT_EQ(forecast.Next().error().code(), Code::kInvalidArgument) << "sample 5 of 5";
}

}  // namespace
}  // namespace optcache::plan
