#include "coordinator/manifest_placement.h"

#include <gtest/gtest.h>

namespace optcache::coordination {
namespace {

using Members = std::vector<MemberId>;

std::vector<ManifestCandidate> Candidates(MemberId count) {
  std::vector<ManifestCandidate> candidates;
  for (MemberId id = 1; id <= count; ++id)
    candidates.push_back({.member = id});
  return candidates;
}

TEST(WhoShallHold, IsEveryPlacedMember) {
  auto candidates = Candidates(6);
  for (const std::size_t i : {0U, 2U, 3U, 5U})
    candidates[i].placed = true;
  EXPECT_EQ(WhoShallHold(candidates, {}), (Members{1, 3, 4, 6}));
}

TEST(WhoShallHold, IsThreeWhereFewerArePlaced) {
  auto candidates = Candidates(6);
  candidates[4].placed = true;
  EXPECT_EQ(WhoShallHold(candidates, {}), (Members{1, 2, 5}));
}

TEST(WhoShallHold, TakesWhoHoldsItAlready) {
  auto candidates = Candidates(6);
  candidates[5].holds = true;
  EXPECT_EQ(WhoShallHold(candidates, {}), (Members{1, 2, 6}));
}

TEST(WhoShallHold, StaysWithTheChoiceBefore) {
  auto candidates = Candidates(6);
  candidates[0].holds = true;
  EXPECT_EQ(WhoShallHold(candidates, Members{3, 4, 6}), (Members{3, 4, 6}));
}

TEST(WhoShallHold, ReplacesAMemberThatHasGone) {
  EXPECT_EQ(WhoShallHold(Candidates(4), Members{3, 4, 6}), (Members{1, 3, 4}));
}

TEST(WhoShallHold, IsEveryoneWhereThereAreFew) {
  EXPECT_EQ(WhoShallHold(Candidates(2), {}), (Members{1, 2}));
  EXPECT_TRUE(WhoShallHold({}, Members{1}).empty());
}

TEST(WhomToAsk, IsWhoHoldsItAndStaysTheSameWhileMoreDo) {
  auto candidates = Candidates(20);
  candidates[11].holds = true;
  EXPECT_EQ(WhomToAsk(candidates, {}), (Members{12}));
  for (auto& candidate : candidates)
    candidate.holds = true;
  const Members asked = WhomToAsk(candidates, Members{12});
  EXPECT_EQ(asked, (Members{1, 2, 3, 4, 5, 6, 7, 12}));
  EXPECT_EQ(WhomToAsk(candidates, asked), asked);
}

TEST(WhomToAsk, DropsWhoHasLostIt) {
  auto candidates = Candidates(3);
  candidates[1].holds = true;
  EXPECT_EQ(WhomToAsk(candidates, Members{1, 2}), (Members{2}));
}

TEST(ManifestPlacement, IsMissedFromWhenCandidatesCameUntilOneHoldsIt) {
  ManifestPlacement placement;
  const MonotonicTime begin{std::chrono::hours(1)};
  const auto at = [begin](int seconds) { return begin + std::chrono::seconds(seconds); };
  placement.Place({}, at(0));
  EXPECT_EQ(placement.missed_since(), std::nullopt);
  auto candidates = Candidates(4);
  placement.Place(candidates, at(1));
  placement.Place(candidates, at(2));
  EXPECT_EQ(placement.missed_since(), at(1));
  candidates[3].holds = true;
  placement.Place(candidates, at(3));
  EXPECT_EQ(placement.missed_since(), std::nullopt);
  EXPECT_EQ(placement.holders_total(), 1U);
  EXPECT_EQ(placement.holders(), (Members{4}));
}

TEST(ManifestPlacement, StaysWithItsChoice) {
  ManifestPlacement placement;
  auto candidates = Candidates(3);
  placement.Place(candidates, {});
  candidates.insert(candidates.begin(), ManifestCandidate{.member = 0, .holds = true});
  placement.Place(candidates, {});
  EXPECT_EQ(placement.members(), (Members{1, 2, 3}));
}

}  // namespace
}  // namespace optcache::coordination
