#include "sidecar/programs/warm_choice.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "sampler/order_source.h"
#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {
namespace {

ByteCount BytesOf(const DatasetPort& dataset, const std::vector<SampleId>& ids) {
  ByteCount bytes = 0;
  for (const SampleId id : ids)
    bytes += dataset.SizeOf(id);
  return bytes;
}

// Of one node with so much room.
std::vector<SampleId> ChosenOfOne(const DatasetPort& dataset, const std::vector<SampleId>& order,
                                  ByteCount room) {
  return ChooseWarm(dataset, order, {{{.node = "n", .room = room}}}).value().at(0);
}

// A heavy tail: one in a hundred has a fifth of a node's room.
std::vector<ByteCount> UnequalSizes() {
  std::vector<ByteCount> sizes;
  for (std::uint64_t i = 0; i < 2000; ++i)
    sizes.push_back(1 + Random::Mix(i) % 1000 + (i % 100 == 7 ? 20'000 : 0));
  return sizes;
}

TEST(WarmChoice, WhatTheJobReadsFirstComesFirst) {
  const FakeDataset dataset("images", std::vector<ByteCount>(5, 10));
  EXPECT_EQ(ChosenOfOne(dataset, {3, 1, 3, 4}, 1000), (std::vector<SampleId>{3, 1, 4, 0, 2}));
  EXPECT_EQ(ChosenOfOne(dataset, {}, 50), (std::vector<SampleId>{0, 1, 2, 3, 4}));
  EXPECT_EQ(ChosenOfOne(dataset, {}, ~ByteCount{0}).size(), 5U);
}

TEST(WarmChoice, WhatDoesNotFitIsLeftOutEvenly) {
  const FakeDataset dataset("images", std::vector<ByteCount>(1000, 10));
  sampler::OrderSource source =
      sampler::OrderSource::Make({.size = 1000, .seed = 3, .world = 4}).value();
  const std::vector<SampleId> order = source.PassOrder(0).value();
  const std::vector<SampleId> chosen = ChosenOfOne(dataset, order, 3000);
  ASSERT_EQ(chosen.size(), 300U);
  const std::set<SampleId> kept(chosen.begin(), chosen.end());
  for (std::size_t tenth = 0; tenth < 10; ++tenth) {
    const auto begin = order.begin() + static_cast<std::ptrdiff_t>(tenth * 100);
    EXPECT_EQ(std::count_if(begin, begin + 100, [&](SampleId id) { return kept.contains(id); }), 30)
        << tenth;
  }
}

TEST(WarmChoice, AnOrderOfAnotherDatasetIsRefused) {
  const FakeDataset dataset("images", std::vector<ByteCount>(5, 10));
  const std::vector<SampleId> order = {5};
  const auto chosen = ChooseWarm(dataset, order, {{{.node = "n", .room = 1000}}});
  ASSERT_FALSE(chosen.has_value());
  EXPECT_EQ(chosen.error().message(), "the order names sample 5, and images has 5");
}

// What a node has no room for would be read for nothing; what it has left might as well be full.
TEST(WarmChoice, FillsEachPartAndNoPartTooMuchWhateverTheSizes) {
  const std::vector<ByteCount> sizes = UnequalSizes();
  const ByteCount total = std::accumulate(sizes.begin(), sizes.end(), ByteCount{0});
  const FakeDataset dataset("images", sizes);
  for (const double share : {0.1, 0.3, 0.7, 0.999}) {
    const auto each = static_cast<ByteCount>(static_cast<double>(total) * share / 4);
    const std::vector<WarmPart> parts = {
        {.node = "a", .room = each}, {.node = "b", .room = 2 * each}, {.node = "c", .room = each}};
    const auto chosen = ChooseWarm(dataset, {}, parts).value();
    ASSERT_EQ(chosen.size(), 3U);
    std::set<SampleId> all;
    std::size_t count = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      EXPECT_TRUE(std::ranges::is_sorted(chosen[i])) << "in the order of reading";
      EXPECT_LE(BytesOf(dataset, chosen[i]), parts[i].room);
      EXPECT_GE(BytesOf(dataset, chosen[i]) + 200, parts[i].room) << share << " " << i;
      all.insert(chosen[i].begin(), chosen[i].end());
      count += chosen[i].size();
    }
    EXPECT_EQ(all.size(), count) << "each sample once";
  }
}

TEST(WarmChoice, StaysEvenWhereSizesDiffer) {
  const std::vector<ByteCount> sizes = UnequalSizes();
  const ByteCount total = std::accumulate(sizes.begin(), sizes.end(), ByteCount{0});
  const FakeDataset dataset("images", sizes);
  const std::vector<SampleId> chosen = ChosenOfOne(dataset, {}, total * 3 / 10);
  for (SampleId tenth = 0; tenth < 10; ++tenth) {
    ByteCount bytes = 0;
    for (const SampleId id : chosen)
      bytes += id / 200 == tenth ? sizes[id] : 0;
    EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(total) * 0.03, 25'000) << tenth;
  }
}

TEST(WarmChoice, WhatNoPartHasRoomForIsLeftOut) {
  const FakeDataset dataset("images", {100, 10, 10});
  EXPECT_EQ(ChosenOfOne(dataset, {}, 20), (std::vector<SampleId>{1, 2}));
  EXPECT_TRUE(ChosenOfOne(dataset, {}, 0).empty());
  EXPECT_TRUE(ChooseWarm(dataset, {}, {}).value().empty());
}

TEST(WarmChoice, PartsAreRead) {
  EXPECT_EQ(ParseWarmPart("node=1.eu=12Ki").value(),
            (WarmPart{.node = "node=1.eu", .room = 12288}));
  for (const char* text : {"", "node1", "=5", "node1=", "node1=much"})
    EXPECT_FALSE(ParseWarmPart(text)) << text;
}

}  // namespace
}  // namespace optcache::sidecar
