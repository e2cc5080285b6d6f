#include "operator/reconcile/cluster/drift.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::reconcile {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

class DriftTest : public testing::Test {
 protected:
  DriftTest() {
    specs_[0].name = "vision/imagenet";
    specs_[0].revision = "old";
    specs_[0].placed = {"a", "b"};
    status_.datasets.push_back({.name = "vision/imagenet"});
    status_.datasets[0].nodes = {{.name = "a", .revision = "old"},
                                 {.name = "b", .revision = "old"}};
  }
  std::vector<std::string> LookAt(int second) {
    drift_.Look(specs_, status_, MonotonicTime(seconds(second)));
    return drift_.Of("vision/imagenet");
  }

  std::vector<coordination::DatasetSpec> specs_{1};
  coordination::ClusterStatus status_;
  Drift drift_;
};

TEST_F(DriftTest, ANodeIsMeantToFollowTheRevisionThatItIsTold) {
  specs_[0].update = {.revision = {.name = "new"}, .nodes = {"a"}};
  LookAt(0);
  EXPECT_THAT(LookAt(31), ElementsAre("a")) << "it does not go over";
  status_.datasets[0].nodes[0].revision = "new";
  EXPECT_THAT(LookAt(32), IsEmpty());
  specs_[0].update.reset();
  LookAt(33);
  EXPECT_THAT(LookAt(64), ElementsAre("a")) << "it does not go back";
}

TEST_F(DriftTest, AnotherRevisionGivesTimeAnew) {
  specs_[0].revision = "new";
  LookAt(0);
  specs_[0].revision = "newer";
  LookAt(25);
  EXPECT_THAT(LookAt(50), IsEmpty());
  EXPECT_THAT(LookAt(56), ElementsAre("a", "b"));
}

TEST_F(DriftTest, OneThatFollowsNeitherForLongDiffers) {
  status_.datasets[0].nodes[1].revision = "older";
  LookAt(0);
  EXPECT_THAT(LookAt(30), IsEmpty());
  EXPECT_TRUE(drift_.Begins("vision/imagenet"));
  EXPECT_THAT(LookAt(31), ElementsAre("b"));
  status_.datasets[0].nodes[1].revision = "old";
  EXPECT_THAT(LookAt(32), IsEmpty());
  EXPECT_FALSE(drift_.Begins("vision/imagenet"));
  status_.datasets[0].nodes[1].revision = "older";  // the time begins anew
  EXPECT_THAT(LookAt(33), IsEmpty());
}

TEST_F(DriftTest, AFirstPlanMayTakeLonger) {
  status_.datasets[0].nodes.pop_back();
  LookAt(0);
  EXPECT_THAT(LookAt(600), IsEmpty());
  EXPECT_THAT(LookAt(601), ElementsAre("b"));
  specs_[0].placed = {"a"};  // the Dataset is there no more
  EXPECT_THAT(LookAt(602), IsEmpty());
}

}  // namespace
}  // namespace optcache::reconcile
