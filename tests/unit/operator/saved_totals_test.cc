#include "operator/reconcile/cluster/saved_totals.h"

#include <gtest/gtest.h>

namespace optcache::reconcile {
namespace {

class SavedTotalsTest : public testing::Test {
 protected:
  // Nodes say that so many requests more were saved of "a/b".
  void Add(std::int64_t requests) { totals_.Take({dataset_}, {{"a/b", {.requests = requests}}}); }
  std::int64_t Requests() const { return totals_.Of("a/b")->requests; }

  SavedBefore dataset_{.name = "a/b", .uid = "1", .saved = {}};
  SavedTotals totals_;
};

TEST_F(SavedTotalsTest, IsNotKnownAtFirst) {
  EXPECT_EQ(totals_.Of("a/b"), nullptr);
  totals_.Take({dataset_}, {});
  EXPECT_EQ(Requests(), 0);
}

TEST_F(SavedTotalsTest, ALeaderGoesOnFromTheStatus) {
  dataset_.saved.requests = 100;
  Add(5);
  EXPECT_EQ(Requests(), 105);
  Add(-2);
  EXPECT_EQ(Requests(), 103);
}

TEST_F(SavedTotalsTest, WhatItHasWrittenItselfCountsNotAgain) {
  Add(5);
  dataset_.saved.requests = 5;
  Add(1);
  EXPECT_EQ(Requests(), 6);
}

TEST_F(SavedTotalsTest, ADatasetThatIsMadeAgainBeginsAtNothing) {
  Add(5);
  dataset_.uid = "2";
  Add(1);
  EXPECT_EQ(Requests(), 1);
}

TEST_F(SavedTotalsTest, WhatIsGoneIsForgotten) {
  Add(5);
  totals_.Take({}, {{"a/b", {.requests = 7}}});
  EXPECT_EQ(totals_.Of("a/b"), nullptr);
  Add(1);
  EXPECT_EQ(Requests(), 1);
}

TEST_F(SavedTotalsTest, StopsAtTheLimit) {
  dataset_.saved.requests = coordination::kMaxSaved;
  Add(coordination::kMaxSaved);
  EXPECT_EQ(Requests(), coordination::kMaxSaved);
}

TEST(SameButForSaved, IsNotSoIfAnythingElseHasChanged) {
  const kube::Json before = kube::Json::parse(R"({
      "metadata": {"name": "b", "resourceVersion": "1", "managedFields": [{"time": "1"}]},
      "spec": {"cache": {"capacity": "30%"}},
      "status": {"samples": 1000, "saved": {"requests": 5}}})");
  kube::Json after = before;
  after["status"]["saved"]["requests"] = 6;
  after["metadata"]["resourceVersion"] = "2";
  after["metadata"]["managedFields"][0]["time"] = "2";
  EXPECT_TRUE(SameButForSaved(before, after));
  after["status"].erase("saved");
  EXPECT_TRUE(SameButForSaved(before, after));
  after["status"]["samples"] = 1001;
  EXPECT_FALSE(SameButForSaved(before, after));
  after = before;
  after["spec"]["cache"]["capacity"] = "40%";
  EXPECT_FALSE(SameButForSaved(before, after));
  after = before;
  after["metadata"]["labels"]["team"] = "vision";
  EXPECT_FALSE(SameButForSaved(before, after));
  after = before;
  after.erase("status");
  EXPECT_FALSE(SameButForSaved(before, after));
}

}  // namespace
}  // namespace optcache::reconcile
