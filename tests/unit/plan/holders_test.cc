#include "plan/holders.h"

#include <array>

#include <gtest/gtest.h>

namespace optcache::plan {
namespace {

std::shared_ptr<const PassPlan> KeepEvenPositionsAtNodeOne(Position begin, Position end) {
  PassPlanBuilder builder({.key = {}, .begin = begin, .end = end, .pass_length = end}, {0}, 2);
  for (Position p = begin; p < end; ++p)
    builder.Add(0, kNoNode, p % 2 == 0 ? 1 : kNoNode, 1);
  return builder.Finish();
}

TEST(Holders, AdvanceAppliesTheReadsBeforeTheCut) {
  const std::vector<SampleId> order = {4, 3, 2, 1, 0};
  Holders holders = {0, 0, 0, 0, 0};
  Advance(*KeepEvenPositionsAtNodeOne(1, 5), order, 4, holders);
  EXPECT_EQ(holders, (Holders{0, kNoNode, 1, kNoNode, 0}));
}

TEST(Holders, RenumberDropsWhatNodesThatLeftHeld) {
  Holders holders = {0, 1, 2, kNoNode};
  Renumber(std::array<NodeIndex, 3>{1, kNoNode, 0}, holders);
  EXPECT_EQ(holders, (Holders{1, kNoNode, 0, kNoNode}));
}

TEST(Holders, DigestTellsStatesApart) {
  const Holders holders = {0, 1, 2, kNoNode, 1};
  EXPECT_EQ(DigestOf(holders), DigestOf(Holders(holders)));
  for (std::size_t i = 0; i < holders.size(); ++i) {
    Holders other = holders;
    other[i] = 7;
    EXPECT_NE(DigestOf(holders), DigestOf(other));
  }
  EXPECT_NE(DigestOf({}), DigestOf({0}));
}

// As docs/formats/plan.md defines it: this value may not change within a protocol version.
TEST(Holders, DigestIsTheDocumentedOne) {
  EXPECT_EQ(DigestOf({0, 1, 2, kNoNode, 1}), 10132476948186832832U);
}

}  // namespace
}  // namespace optcache::plan
