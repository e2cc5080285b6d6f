#include "cache-node/control/savings_table.h"

#include <gtest/gtest.h>

namespace optcache::node {
namespace {

using coordination::DatasetSavings;
using coordination::kMaxDatasets;
using coordination::kMaxSaved;
using coordination::SavingsBatch;

class SavingsTableTest : public testing::Test {
 protected:
  void Say(ClientId client, std::int64_t requests, std::uint64_t wait_us = 0) {
    table_.OnSavings(client, "a/b",
                     {.dataset = 1, .requests = requests, .bytes = 0, .wait_us = wait_us});
  }
  // The requests of the next batch, which is answered.
  std::int64_t Next() {
    const SavingsBatch batch = table_.Batch();
    table_.OnAnswered(batch.number);
    return batch.datasets.empty() ? 0 : batch.datasets.front().saved.requests;
  }

  SavingsTable table_;
};

TEST_F(SavingsTableTest, CountsWhatIsNewOfEachConnection) {
  Say(1, 5);
  Say(1, 7);
  Say(2, 10);
  EXPECT_EQ(Next(), 17);
  Say(1, 7);
  EXPECT_EQ(Next(), 0);
  Say(1, 6);
  EXPECT_EQ(Next(), -1) << "more was read ahead";
}

TEST_F(SavingsTableTest, TellsABatchAgainUntilItIsAnswered) {
  EXPECT_EQ(table_.Batch(), SavingsBatch{});
  Say(1, 5);
  const SavingsBatch first = {
      .number = 1, .datasets = {DatasetSavings{.dataset = "a/b", .saved = {.requests = 5}}}};
  EXPECT_EQ(table_.Batch(), first);
  Say(1, 7);
  EXPECT_EQ(table_.Batch(), first) << "what is new waits for the next one";
  table_.OnAnswered(0);
  EXPECT_EQ(table_.Batch(), first) << "that was the answer to an earlier report";
  table_.OnAnswered(1);
  const SavingsBatch& second = table_.Batch();
  EXPECT_EQ(second.number, 2U);
  EXPECT_EQ(second.datasets.front().saved.requests, 2);
}

TEST_F(SavingsTableTest, ANewConnectionBeginsAtNothing) {
  Say(1, 5);
  table_.OnClosed(1);
  Say(1, 3);
  EXPECT_EQ(Next(), 8) << "what was said before it closed still counts";
}

TEST_F(SavingsTableTest, DoesNotTakeWhatCannotBe) {
  Say(1, kMaxSaved + 1);
  Say(1, INT64_MIN);
  Say(1, 1, UINT64_MAX);
  EXPECT_EQ(Next(), 0);
  Say(1, 5, 9);
  Say(1, 6, 8);
  EXPECT_EQ(Next(), 5) << "a wait gets no shorter";
}

TEST_F(SavingsTableTest, StopsAtTheLimit) {
  Say(1, kMaxSaved);
  Say(2, kMaxSaved);
  EXPECT_EQ(Next(), kMaxSaved);
  Say(1, -kMaxSaved);
  Say(2, -kMaxSaved);
  EXPECT_EQ(Next(), -kMaxSaved);
}

TEST_F(SavingsTableTest, KeepsABoundedNumberOfDatasets) {
  for (ClientId client = 1; client < 3; ++client) {
    for (std::size_t i = 0; i < 2 * kMaxDatasets; ++i)
      table_.OnSavings(client, std::to_string(client * i), {.dataset = i, .requests = 1});
  }
  EXPECT_EQ(table_.Batch().datasets.size(), kMaxDatasets);
}

TEST_F(SavingsTableTest, RemembersABoundedNumberOfDatasetsOfAClient) {
  for (std::size_t i = 0; i < 2 * kMaxDatasets; ++i)
    table_.OnSavings(1, "one", {.dataset = i, .requests = 1});
  EXPECT_EQ(Next(), static_cast<std::int64_t>(kMaxDatasets));
}

}  // namespace
}  // namespace optcache::node
