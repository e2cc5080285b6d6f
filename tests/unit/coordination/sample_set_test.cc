#include "coordination/sample_set.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace optcache::coordination {
namespace {

TEST(SampleSet, ReadsWhatItWrites) {
  Random random(1);
  for (std::uint64_t keep_one_of : {1U, 2U, 10U, 31U, 32U, 33U, 100U, 5000U}) {
    std::vector<SampleId> ids;
    for (SampleId id = 0; id < 10000; ++id) {
      if (random.Below(keep_one_of) == 0) ids.push_back(id);
    }
    EXPECT_EQ(DecodeSampleSet(EncodeSampleSet(ids)), ids);
  }
  EXPECT_EQ(DecodeSampleSet(EncodeSampleSet({})), std::vector<SampleId>{});
  const std::vector<SampleId> extremes = {0, 0xfffffffeU};
  EXPECT_EQ(DecodeSampleSet(EncodeSampleSet(extremes)), extremes);
}

TEST(SampleSet, TakesAtMostABitASampleWhenMostAreHeld) {
  std::vector<SampleId> ids(8000);
  for (SampleId id = 0; id < ids.size(); ++id)
    ids[id] = id;
  EXPECT_EQ(EncodeSampleSet(ids).size(), 1001U);
}

TEST(SampleSet, RefusesWhatItWouldNotWrite) {
  const auto refused = [](std::string bytes) { return !DecodeSampleSet(bytes).has_value(); };
  using namespace std::string_literals;
  EXPECT_TRUE(refused(""));
  EXPECT_TRUE(refused("\x02"s));
  EXPECT_TRUE(refused("\0\1\0\0"s)) << "part of an id";
  EXPECT_TRUE(refused("\0\2\0\0\0\1\0\0\0"s)) << "not ascending";
  EXPECT_TRUE(refused("\0\1\0\0\0\1\0\0\0"s)) << "twice";
  EXPECT_TRUE(refused("\0\1\0\0\0"s)) << "shorter as a bitmap";
  EXPECT_TRUE(refused("\1\0\0\0\0\1"s)) << "shorter as ids";
  EXPECT_TRUE(refused("\1\xff\0"s)) << "zero at the end";
  EXPECT_TRUE(refused("\1"s)) << "empty bitmap";
}

}  // namespace
}  // namespace optcache::coordination
