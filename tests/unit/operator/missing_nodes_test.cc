#include "operator/reconcile/cluster/missing_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::reconcile {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr double kLongAgo = 1000;

// Nodes "a" and "b" on machines "ma" and "mb"; the Dataset is placed on both.
class MissingNodesTest : public testing::Test {
 protected:
  MissingNodesTest() {
    for (const std::string letter : {"a", "b"})
      machines_[letter] = {.node = "m" + letter, .created_at = kLongAgo};
    placed_["v/d"] = {.dataset = "v/d", .members = {"a", "b"}};
    SetMembers({"a", "b"});
  }
  void SetMembers(const std::vector<std::string>& names) {
    status_.members.clear();
    for (const std::string& name : names)
      status_.members.push_back({.name = name});
  }
  // What the operator sees `second` seconds after the first look.
  std::vector<std::string> LookAt(int second) {
    missing_.Look({.machines = machines_,
                   .status = status_,
                   .placed = placed_,
                   .now = MonotonicTime(seconds(second)),
                   .unix_seconds = kLongAgo + 10'000 + second});
    return Of("v/d");
  }
  std::vector<std::string> Of(const std::string& dataset) {
    return missing_.Of(placed_.at(dataset), placement_);
  }

  std::map<std::string, MemberMachine> machines_;
  coordination::ClusterStatus status_;
  std::map<std::string, Placed> placed_;
  api::Placement placement_;
  MissingNodes missing_;
};

TEST_F(MissingNodesTest, AMachineWhoseNodeWasAMemberIsMissingAfterAWhile) {
  EXPECT_THAT(LookAt(0), IsEmpty());
  SetMembers({"a"});
  LookAt(1);
  placed_["v/d"].members = {"a"};  // placement has forgotten it
  EXPECT_THAT(LookAt(31), IsEmpty());
  EXPECT_THAT(LookAt(32), ElementsAre("mb"));
  SetMembers({"a", "b"});
  EXPECT_THAT(LookAt(33), IsEmpty());
  SetMembers({"a"});
  EXPECT_THAT(LookAt(34), IsEmpty()) << "the time begins again";
}

TEST_F(MissingNodesTest, ADatasetThatWasNotThereDoesNotMissIt) {
  placed_["v/elsewhere"] = {.dataset = "v/elsewhere", .members = {"a"}};
  LookAt(0);
  SetMembers({"a"});
  LookAt(1);
  EXPECT_THAT(LookAt(32), ElementsAre("mb"));
  EXPECT_THAT(Of("v/elsewhere"), IsEmpty());
  placed_["v/later"] = {.dataset = "v/later", .members = {"a"}};
  EXPECT_THAT(Of("v/later"), ElementsAre("mb")) << "it may be placed there";
}

TEST_F(MissingNodesTest, ANewPodHasTimeToStart) {
  machines_["b"].created_at = kLongAgo + 10'000;
  SetMembers({"a"});
  LookAt(0);
  EXPECT_THAT(LookAt(600), IsEmpty());
  EXPECT_THAT(missing_.Of(placed_.at("v/d"), placement_, seconds(0)), IsEmpty());
  EXPECT_THAT(LookAt(601), ElementsAre("mb"));
}

// A leader that has just begun knows no member: all have half a minute to report.
TEST_F(MissingNodesTest, AnOldPodThatNeverWasAMemberIsMissingAfterHalfAMinute) {
  SetMembers({});
  LookAt(0);
  SetMembers({"a"});
  EXPECT_THAT(LookAt(30), IsEmpty());
  EXPECT_THAT(missing_.Of(placed_.at("v/d"), placement_, seconds(29)), ElementsAre("mb"));
  EXPECT_THAT(LookAt(31), ElementsAre("mb"));
}

TEST_F(MissingNodesTest, ThoseThatAreMeantToGoAreNotMissing) {
  for (bool MemberMachine::* const goes : {&MemberMachine::leaving, &MemberMachine::draining}) {
    SetMembers({"a", "b"});
    LookAt(0);
    SetMembers({"a"});
    machines_["b"].*goes = true;
    LookAt(1);
    EXPECT_THAT(LookAt(100), IsEmpty());
    machines_["b"].*goes = false;
    EXPECT_THAT(LookAt(101), IsEmpty()) << "the time begins again";
    EXPECT_THAT(LookAt(132), ElementsAre("mb"));
  }
  machines_.erase("b");
  EXPECT_THAT(LookAt(133), IsEmpty()) << "its pod is gone";
}

TEST_F(MissingNodesTest, AMachineThatAnotherPodServesIsNotMissing) {
  machines_["evicted"] = machines_["b"];
  LookAt(0);
  EXPECT_THAT(LookAt(100), IsEmpty());
}

TEST_F(MissingNodesTest, APodWithoutAMachineIsNotMissing) {
  machines_["pending"] = {.created_at = kLongAgo};
  LookAt(0);
  EXPECT_THAT(LookAt(100), IsEmpty());
}

TEST_F(MissingNodesTest, OnlyMachinesThatTheDatasetMayUseAreMissing) {
  machines_["b"].labels = {{"pool", "gpu"}, {"zone", "1"}};
  SetMembers({"a"});
  placed_["v/d"].members = {"a"};
  LookAt(0);
  EXPECT_THAT(LookAt(31), ElementsAre("mb"));
  placement_.node_selector = {{"pool", "cpu"}};
  EXPECT_THAT(LookAt(32), IsEmpty());
  placement_.node_selector = {{"pool", "gpu"}};
  EXPECT_THAT(LookAt(33), ElementsAre("mb"));
  placement_.max_nodes = 1;
  EXPECT_THAT(LookAt(34), IsEmpty()) << "it has all the nodes that it may have";
}

}  // namespace
}  // namespace optcache::reconcile
