#include "kube/conditions.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/seeds.h"

namespace optcache::kube {
namespace {

constexpr double kNoon = 1'800'000'000;
constexpr double kMinute = 60;

Condition Ready(ConditionStatus status, std::string reason = "Serving") {
  return {.type = "Ready",
          .status = status,
          .reason = std::move(reason),
          .message = "all is well",
          .observed_generation = 4};
}

TEST(Conditions, TheFirstOfItsTypeIsAdded) {
  Json conditions;
  SetCondition(conditions, Ready(ConditionStatus::kUnknown, "Pending"), kNoon);
  EXPECT_EQ(conditions, Json::array({{{"type", "Ready"},
                                      {"status", "Unknown"},
                                      {"reason", "Pending"},
                                      {"message", "all is well"},
                                      {"observedGeneration", 4},
                                      {"lastTransitionTime", "2027-01-15T08:00:00Z"}}}));
}

TEST(Conditions, TheSameStatusTwiceKeepsTheTimeOfItsTransition) {
  Json conditions;
  SetCondition(conditions, Ready(ConditionStatus::kTrue), kNoon);
  SetCondition(conditions, Ready(ConditionStatus::kTrue, "OtherReason"), kNoon + kMinute);
  ASSERT_EQ(conditions.size(), 1U);
  EXPECT_EQ(TextAt(conditions, "/0/lastTransitionTime"), "2027-01-15T08:00:00Z");
  EXPECT_EQ(TextAt(conditions, "/0/reason"), "OtherReason");
}

TEST(Conditions, AFlipMovesTheTimeOfTheTransition) {
  Json conditions;
  SetCondition(conditions, Ready(ConditionStatus::kTrue), kNoon);
  SetCondition(conditions, Ready(ConditionStatus::kFalse), kNoon + kMinute);
  ASSERT_EQ(conditions.size(), 1U);
  EXPECT_EQ(TextAt(conditions, "/0/lastTransitionTime"), "2027-01-15T08:01:00Z");
}

TEST(Conditions, TheTimeMovesExactlyWithTheStatus) {
  const std::uint64_t seed = TestSeed(7);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  Json conditions;
  std::optional<ConditionStatus> before;
  std::string since;
  for (int i = 0; i < 500; ++i) {
    const auto status = static_cast<ConditionStatus>(random.Below(3));
    const double now = kNoon + i;
    SetCondition(conditions, Ready(status, "R" + std::to_string(random.Below(5))), now);
    const std::string time = TextAt(conditions, "/0/lastTransitionTime");
    if (before == status) {
      ASSERT_EQ(time, since);
    } else {
      ASSERT_NE(time, since);
    }
    before = status;
    since = time;
  }
}

TEST(Conditions, OthersStayWhereTheyAre) {
  Json conditions = Json::array({{{"type", "Placed"}}, {{"type", "Ready"}}, "odd"});
  SetCondition(conditions, Ready(ConditionStatus::kTrue), kNoon);
  ASSERT_EQ(conditions.size(), 3U);
  EXPECT_EQ(TextAt(conditions, "/0/type"), "Placed");
  EXPECT_EQ(TextAt(conditions, "/1/status"), "True");
}

TEST(Conditions, TooLongAMessageIsCutBetweenTwoCharacters) {
  Json conditions;
  Condition condition = Ready(ConditionStatus::kFalse);
  condition.message = std::string(32'767, 'x') + "é";
  SetCondition(conditions, condition, kNoon);
  EXPECT_EQ(TextAt(conditions, "/0/message"), std::string(32'767, 'x'));
}

TEST(Conditions, ReadsTheOneOfAType) {
  Json object;
  SetCondition(object["status"]["conditions"], Ready(ConditionStatus::kTrue), kNoon);
  const Condition ready = ConditionOf(object, "Ready");
  EXPECT_EQ(ready.status, ConditionStatus::kTrue);
  EXPECT_EQ(ready.reason, "Serving");
  EXPECT_EQ(ready.message, "all is well");
  EXPECT_EQ(ready.observed_generation, 4);
  const Condition placed = ConditionOf(object, "Placed");
  EXPECT_EQ(placed.type, "Placed");
  EXPECT_EQ(placed.status, ConditionStatus::kUnknown);
  EXPECT_EQ(placed.reason, "");
}

}  // namespace
}  // namespace optcache::kube
