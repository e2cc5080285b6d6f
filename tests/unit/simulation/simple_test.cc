#include <gtest/gtest.h>

#include "base/random.h"
#include "simulation/policies/policy.h"

namespace optcache::plan {
namespace {

TEST(None, NeverHits) {
  const auto policy = MakeNone();
  EXPECT_FALSE(policy->Read(0));
  EXPECT_FALSE(policy->Read(0));
  EXPECT_FALSE(policy->Holds(0));
}

TEST(Pin, KeepsWhatCameFirst) {
  const auto policy = MakePin({.sizes = Sizes::Equal(3, 1), .capacity = 2});
  EXPECT_FALSE(policy->Read(2));
  EXPECT_FALSE(policy->Read(0));
  EXPECT_FALSE(policy->Read(1));
  EXPECT_TRUE(policy->Read(2));
  EXPECT_TRUE(policy->Read(0));
  EXPECT_FALSE(policy->Holds(1));
}

TEST(Pin, FillsWhatIsLeftWithSmallerSamples) {
  const auto policy = MakePin({.sizes = Sizes({5, 6, 4}), .capacity = 10});
  policy->Read(0);
  policy->Read(1);
  policy->Read(2);
  EXPECT_TRUE(policy->Holds(0));
  EXPECT_FALSE(policy->Holds(1));
  EXPECT_TRUE(policy->Holds(2));
}

TEST(RandomReplacement, HoldsWhatCameAndNeverTooMuch) {
  constexpr std::uint32_t kSamples = 20;
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t i = 0; i < kSamples; ++i)
    sizes.push_back(1 + i % 7);
  const auto policy = MakeRandom({.sizes = Sizes(sizes), .capacity = 30}, 1);
  Random random(2);
  for (int i = 0; i < 5'000; ++i) {
    const auto sample = static_cast<SampleId>(random.Below(kSamples));
    const bool held = policy->Holds(sample);
    ASSERT_EQ(policy->Read(sample), held);
    ASSERT_TRUE(policy->Holds(sample));
    ByteCount used = 0;
    for (SampleId s = 0; s < kSamples; ++s)
      used += policy->Holds(s) ? sizes[s] : 0U;
    ASSERT_LE(used, 30U);
  }
}

TEST(RandomReplacement, NeverHoldsWhatIsTooLarge) {
  const auto policy = MakeRandom({.sizes = Sizes({11, 3}), .capacity = 10}, 1);
  policy->Read(1);
  policy->Read(0);
  EXPECT_FALSE(policy->Holds(0));
  EXPECT_TRUE(policy->Holds(1));
}

}  // namespace
}  // namespace optcache::plan
