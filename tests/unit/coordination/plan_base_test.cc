#include "coordination/plan_base.h"

#include <gtest/gtest.h>

namespace optcache::coordination {
namespace {

TEST(PlanBase, LeavesASampleWithItsFirstHolder) {
  const PlanBase base = MakePlanBase({{7, {1, 2, 9}}, {3, {2, 4}}, {5, {4}}});
  EXPECT_EQ(base, (PlanBase{{{3, {2, 4}}, {7, {1, 9}}}}));
}

TEST(PlanBase, ReadsWhatItWrites) {
  const PlanBase base = MakePlanBase({{1, {0, 1, 2, 3}}, {2, {100000}}, {9, {}}});
  EXPECT_EQ(DecodePlanBase(EncodePlanBase(base)), base);
  EXPECT_EQ(DecodePlanBase(EncodePlanBase({})), PlanBase{});
}

TEST(PlanBase, RefusesWhatItWouldNotWrite) {
  const auto refused = [](const std::string& bytes) { return !DecodePlanBase(bytes).has_value(); };
  const std::string good = EncodePlanBase({{{1, {5}}, {2, {6}}}});
  for (std::size_t length = 0; length < good.size(); ++length) {
    const bool whole = length == 8 || length == good.size() - (good.size() - 8) / 2;
    EXPECT_EQ(refused(good.substr(0, length)), !whole) << length;
  }
  EXPECT_TRUE(refused(EncodePlanBase({{{2, {5}}, {1, {6}}}}))) << "members descend";
  EXPECT_TRUE(refused(EncodePlanBase({{{1, {5}}, {2, {5}}}}))) << "two holders";
  EXPECT_TRUE(refused(EncodePlanBase({{{1, {}}}}))) << "holds nothing";
}

TEST(DigestHex, IsSha256) {
  EXPECT_EQ(DigestHex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace optcache::coordination
