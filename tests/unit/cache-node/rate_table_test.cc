#include "cache-node/control/rate_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::node {
namespace {

using coordination::DatasetDemand;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr wire::DatasetKey kKey = 5;

class RateTableTest : public testing::Test {
 protected:
  // Requests of whole numbers; nothing of bytes.
  bool Want(ClientId client, std::uint64_t requests, bool is_held_back = false,
            wire::DatasetKey key = kKey, const std::string& pod = "") {
    return table_.OnDemand(
        client, pod, "a/b",
        {.dataset = key, .requests_milli = 1000 * requests, .requests_held_back = is_held_back});
  }
  bool PodWants(const std::string& pod, ClientId client, std::uint64_t requests,
                wire::DatasetKey key = kKey) {
    return Want(client, requests, /*is_held_back=*/false, key, pod);
  }
  void Share(double requests, double bytes = 0) {
    table_.OnShares({{.dataset = "a/b", .requests = requests, .bytes = bytes}}, now_);
  }
  // Thousandths of requests, by client.
  std::vector<std::uint64_t> Requests() {
    std::vector<std::uint64_t> all;
    for (const RateTable::Told& told : table_.Divide(now_))
      all.push_back(told.share.requests_milli);
    return all;
  }

  RateTable table_;
  MonotonicTime now_{std::chrono::hours(1)};
};

TEST_F(RateTableTest, AddsUpWhatItsSidecarsWant) {
  EXPECT_THAT(table_.Report(), IsEmpty());
  EXPECT_TRUE(Want(1, 12));
  EXPECT_TRUE(Want(2, 7));
  EXPECT_TRUE(table_.OnDemand(
      3, "", "a/b",
      {.dataset = kKey, .requests_milli = 99'000, .bytes = 4096, .requests_held_back = true}));
  EXPECT_FALSE(Want(1, 13)) << "it has said so before";
  Share(100, 10'000);
  table_.Divide(now_);
  EXPECT_THAT(table_.Report(),
              ElementsAre(DatasetDemand{.dataset = "a/b",
                                        .requests = {.askers = 2, .wanted = 20, .held_back = 1},
                                        .bytes = {.askers = 3, .wanted = 4096}}));
}

TEST_F(RateTableTest, TellsNothingOfWhatTheCoordinatorHasNotSaidForLong) {
  Want(1, 10);
  Share(100);
  now_ += RateTable::kSharesLast - std::chrono::seconds(1);
  EXPECT_EQ(table_.Divide(now_).size(), 1U);
  now_ += std::chrono::seconds(1);
  table_.OnShares({}, now_);
  EXPECT_THAT(table_.Divide(now_), IsEmpty());
  Share(50);
  EXPECT_EQ(table_.Divide(now_).size(), 1U);
}

TEST_F(RateTableTest, DividesWhatTheCoordinatorSays) {
  Want(1, 10);
  Want(2, 0, /*is_held_back=*/true);
  EXPECT_THAT(table_.Divide(now_), IsEmpty()) << "nothing was said yet";
  Share(100);
  EXPECT_THAT(Requests(), ElementsAre(50'000, 50'000)) << "the first may have made its wants up";
  EXPECT_THAT(Requests(), ElementsAre(15'000, 85'000));
  Want(3, 0, /*is_held_back=*/true);
  EXPECT_THAT(Requests(), ElementsAre(13'333, 43'333, 43'333));
  table_.OnShares({}, now_);
  EXPECT_THAT(Requests(), ElementsAre(13'333, 43'333, 43'333)) << "as before";
}

// Else it would have an equal part for each.
TEST_F(RateTableTest, APodWithManyConnectionsAndManifestsAsksOnce) {
  Want(1, 0, /*is_held_back=*/true);
  EXPECT_TRUE(PodWants("uid", 2, 9, 5));
  EXPECT_FALSE(PodWants("uid", 3, 9, 6));
  EXPECT_FALSE(PodWants("uid", 4, 10, 7));
  Share(100);
  table_.Divide(now_);
  EXPECT_THAT(table_.Report(),
              ElementsAre(DatasetDemand{.dataset = "a/b",
                                        .requests = {.askers = 1, .wanted = 10, .held_back = 1},
                                        .bytes = {.askers = 2}}));
  const std::vector<RateTable::Told> told = table_.Divide(now_);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].to, 1U);
  EXPECT_EQ(told[1].to, 4U) << "the latest";
  EXPECT_EQ(told[1].share.dataset, 7U);
  table_.OnClosed(2);
  EXPECT_EQ(table_.Divide(now_).size(), 2U) << "one that is not the latest";
  table_.OnClosed(4);
  EXPECT_EQ(table_.Divide(now_).size(), 1U);
}

// A mean with it in it would bring its node the equal parts of all its sidecars.
TEST_F(RateTableTest, WantsFarBeyondWhatWasToldAreOneThatIsHeldBack) {
  Want(1, 10);
  Want(2, 0);
  Want(3, 0, /*is_held_back=*/true);
  Share(90);
  Requests();
  EXPECT_THAT(Requests(), ElementsAre(13'000, 3'000, 74'000));
  const auto report = [this] { return table_.Report().at(0).requests; };
  Want(2, 12);
  EXPECT_EQ(report(), (coordination::RateDemand{.askers = 2, .wanted = 22, .held_back = 1}));
  Want(2, 13);
  EXPECT_EQ(report(), (coordination::RateDemand{.askers = 1, .wanted = 10, .held_back = 2}));
  Want(2, 1'000'000'000'000);
  EXPECT_EQ(report(), (coordination::RateDemand{.askers = 1, .wanted = 10, .held_back = 2}));
  EXPECT_THAT(Requests(), ElementsAre(13'000, 38'500, 38'500));
}

TEST_F(RateTableTest, NamesTheManifestThatEachHas) {
  Want(1, 0, /*is_held_back=*/true, 5);
  Want(2, 0, /*is_held_back=*/true, 6);
  Share(0, 1000);
  const std::vector<RateTable::Told> told = table_.Divide(now_);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].to, 1U);
  EXPECT_EQ(told[0].share, (wire::StoreShare{.dataset = 5, .requests_milli = 0, .bytes = 500}));
  EXPECT_EQ(told[1].to, 2U);
  EXPECT_EQ(told[1].share, (wire::StoreShare{.dataset = 6, .requests_milli = 0, .bytes = 500}));
}

TEST_F(RateTableTest, WhoHasGoneWantsNothingMore) {
  Want(1, 10);
  Want(2, 0, /*is_held_back=*/true);
  Share(100);
  table_.OnClosed(1);
  EXPECT_THAT(Requests(), ElementsAre(100'000));
  table_.OnClosed(2);
  EXPECT_THAT(table_.Report(), IsEmpty());
  Want(3, 10);
  EXPECT_THAT(table_.Divide(now_), IsEmpty()) << "the share is not this node's any more";
}

// Its Dataset was deleted, or has another manifest, while it reads.
TEST_F(RateTableTest, WhatWasAskedByAKeyThatIsNotKnownAnyMoreChangesWithTheNextWord) {
  Want(1, 10);
  Want(2, 0, /*is_held_back=*/true);
  Share(100);
  Requests();
  const auto want_unknown = [this](ClientId client, wire::DatasetKey key) {
    return table_.OnDemand(client, "", "", {.dataset = key, .requests_milli = 30'000});
  };
  EXPECT_FALSE(want_unknown(1, kKey));
  EXPECT_THAT(Requests(), ElementsAre(35'000, 65'000));
  EXPECT_FALSE(want_unknown(1, 99));
  EXPECT_FALSE(want_unknown(3, kKey)) << "it has never asked";
  EXPECT_THAT(Requests(), ElementsAre(35'000, 65'000));
}

TEST_F(RateTableTest, WhoIsRefusedHasNoPart) {
  Want(1, 10);
  Want(2, 0, /*is_held_back=*/true);
  PodWants("uid", 3, 10);
  Share(100);
  table_.OnRefused(1, "", 99);
  EXPECT_EQ(Requests().size(), 3U) << "of another dataset";
  table_.OnRefused(1, "", kKey);
  table_.OnRefused(4, "uid", kKey);
  EXPECT_THAT(Requests(), ElementsAre(100'000));
}

TEST_F(RateTableTest, NoShareIsSoSmallThatItSaysThatThereIsNoLimit) {
  Want(1, 0, /*is_held_back=*/true);
  Want(2, 0, /*is_held_back=*/true);
  Share(0.0001);
  EXPECT_THAT(Requests(), ElementsAre(1, 1));
}

TEST_F(RateTableTest, HasNoMoreDatasetsThanACluster) {
  for (std::size_t i = 0; i < 2 * coordination::kMaxDatasets; ++i)
    table_.OnDemand(1, "", "a/" + std::to_string(i), {.dataset = i});
  EXPECT_EQ(table_.Report().size(), coordination::kMaxDatasets);
}

}  // namespace
}  // namespace optcache::node
