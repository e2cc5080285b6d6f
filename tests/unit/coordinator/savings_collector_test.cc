#include "coordinator/savings_collector.h"

#include <string>

#include <gtest/gtest.h>

namespace optcache::coordination {
namespace {

Report Told(std::uint64_t number, std::int64_t requests, const std::string& dataset = "a/b",
            const std::string& node = "n", std::uint64_t incarnation = 1) {
  return {.node = node,
          .incarnation = incarnation,
          .savings = {.number = number,
                      .datasets = {{.dataset = dataset, .saved = {.requests = requests}}}}};
}

class SavingsCollectorTest : public testing::Test {
 protected:
  std::int64_t Requests() { return book_.Collect()["a/b"].requests; }

  SavingsCollector book_;
};

TEST_F(SavingsCollectorTest, AddsUpBatchesOfAllNodes) {
  book_.Take(Told(1, 5));
  book_.Take(Told(2, 7));
  book_.Take(Told(1, -3, "a/b", "other"));
  book_.Take(Told(3, 1, "a/c"));
  EXPECT_EQ(book_.Collect(),
            (SavingsByDataset{{"a/b", {.requests = 9}}, {"a/c", {.requests = 1}}}));
  EXPECT_TRUE(book_.Collect().empty()) << "what was collected is gone";
}

TEST_F(SavingsCollectorTest, CountsABatchOnceThatComesTwice) {
  book_.Take(Told(1, 5));
  book_.Take(Told(1, 5));
  EXPECT_EQ(Requests(), 5);
  book_.Take(Told(1, 5));
  EXPECT_EQ(Requests(), 0);
}

TEST_F(SavingsCollectorTest, ANodeThatWasStartedAgainBeginsAtOne) {
  book_.Take(Told(8, 5));
  book_.Take(Told(1, 7, "a/b", "n", /*incarnation=*/2));
  EXPECT_EQ(Requests(), 12);
}

TEST_F(SavingsCollectorTest, AReportWithoutABatchSaysNothing) {
  book_.Take(Told(0, 5));
  EXPECT_EQ(Requests(), 0);
}

TEST_F(SavingsCollectorTest, TakesNoNumberBeyondItsLimit) {
  book_.Take(Told(1, kMaxSaved + 1));
  EXPECT_EQ(Requests(), 0);
  book_.Take(Told(2, kMaxSaved));
  book_.Take(Told(3, kMaxSaved));
  EXPECT_EQ(Requests(), kMaxSaved);
}

TEST_F(SavingsCollectorTest, KeepsABoundedNumberOfDatasets) {
  for (std::size_t i = 0; i < 2 * kMaxDatasets; ++i)
    book_.Take(Told(i + 1, 1, "a/" + std::to_string(i)));
  EXPECT_EQ(book_.Collect().size(), kMaxDatasets);
}

TEST_F(SavingsCollectorTest, ForgetsTheNodeThatWasSilentForTheLongest) {
  book_.Take(Told(1, 1, "a/b", "first"));
  book_.Take(Told(1, 1, "a/b", "second"));
  for (std::size_t i = 0; i + 1 < SavingsCollector::kMaxNodes; ++i)
    book_.Take(Told(1, 1, "a/b", "node" + std::to_string(i)));
  book_.Collect();
  book_.Take(Told(1, 1, "a/b", "second"));
  EXPECT_EQ(Requests(), 0);
  book_.Take(Told(1, 1, "a/b", "first"));
  EXPECT_EQ(Requests(), 1);
}

}  // namespace
}  // namespace optcache::coordination
