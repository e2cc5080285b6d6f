#include "plan/policies.h"

#include <algorithm>
#include <deque>
#include <set>

#include <gtest/gtest.h>

#include "base/random.h"

namespace optcache::plan {
namespace {

TEST(Pin, KeepsWhatCameFirst) {
  const auto policy = MakePinPolicy(3, {2});
  EXPECT_FALSE(policy->Read(2));
  EXPECT_FALSE(policy->Read(0));
  EXPECT_FALSE(policy->Read(1));
  EXPECT_TRUE(policy->Read(2));
  EXPECT_TRUE(policy->Read(0));
  EXPECT_FALSE(policy->Holds(1));
}

TEST(Lru, AgreesWithAListPerHome) {
  constexpr std::uint32_t kSamples = 50;
  const HomeCapacities capacities = {3, 0, 7};
  const auto policy = MakeLruPolicy(kSamples, capacities);
  std::vector<std::deque<SampleId>> lists(capacities.size());
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    const auto sample = static_cast<SampleId>(random.Below(kSamples));
    const NodeIndex home = HomeOf(sample, capacities.size());
    std::deque<SampleId>& list = lists[home];
    const auto found = std::find(list.begin(), list.end(), sample);
    const bool hit = found != list.end();
    if (hit) list.erase(found);
    list.push_front(sample);
    if (list.size() > capacities[home]) list.pop_back();
    ASSERT_EQ(policy->Read(sample), hit);
    ASSERT_EQ(policy->Holds(sample), !list.empty() && list.front() == sample);
  }
}

TEST(None, NeverHits) {
  const auto policy = MakeNonePolicy();
  EXPECT_FALSE(policy->Read(0));
  EXPECT_FALSE(policy->Read(0));
  EXPECT_FALSE(policy->Holds(0));
}

TEST(HomeOf, SpreadsSamplesOverTheNodes) {
  std::vector<int> samples(8);
  for (SampleId sample = 0; sample < 8000; ++sample)
    ++samples[HomeOf(sample, 8)];
  for (const int count : samples)
    EXPECT_NEAR(count, 1000, 120);
}

}  // namespace
}  // namespace optcache::plan
