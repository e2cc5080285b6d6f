#include "sidecar/fetch/rate_watch.h"

#include <optional>

#include <gmock/gmock.h>

#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::IsEmpty;
using wire::StoreDemand;

constexpr StoreRate kMost{.requests = 200, .bytes = 5e7};
constexpr StoreRate kFirst{.requests = 20, .bytes = 5e6};

// Stores of which the test says what was used.
class FakeRates final : public StorePort {
 public:
  void Read(const DatasetPort&, Part, OnWait) override {}
  void ReadTogether(const DatasetPort&, std::vector<Part>, OnWait) override {}
  ByteCount Arrived(const DatasetPort&) const override { return 0; }
  std::vector<StoreUse> Uses() const override { return uses; }
  void SetRates(wire::DatasetKey dataset, const StoreRate& rate) override { set[dataset] = rate; }

  std::vector<StoreUse> uses = {{.dataset = 1, .most = kMost}};
  std::map<wire::DatasetKey, StoreRate> set;
};

class RateWatchTest : public testing::Test {
 protected:
  void Pass(Duration time) {
    for (Duration passed{}; passed < time; passed += milliseconds(500)) {
      clock_.Advance(milliseconds(500));
      alarms_.RunDue();
    }
  }
  StoreDemand Last() const { return node_.All<StoreDemand>().back(); }
  StoreUse& use() { return store_.uses[0]; }

  ManualClock clock_;
  Alarms alarms_{clock_};
  FakeNode node_;
  FakeRates store_;
  RateWatch watch_{node_, store_, alarms_};
};

TEST_F(RateWatchTest, TellsEachSecondWhatIsWanted) {
  watch_.Start();
  EXPECT_EQ(Last(), StoreDemand{.dataset = 1});
  use().requests = 40;
  use().bytes = 4000;
  Pass(seconds(1));
  EXPECT_EQ(Last(), (StoreDemand{.dataset = 1, .requests_milli = 50'000, .bytes = 5000}));
  use().requests = 48;
  Pass(seconds(1));
  EXPECT_EQ(Last().requests_milli, 40'000U)
      << "a quarter of the way from 40 to 8, and a quarter more";
  Pass(seconds(60));
  EXPECT_LT(Last().requests_milli, 10U);
  EXPECT_EQ(node_.All<StoreDemand>().size(), 63U);
}

TEST_F(RateWatchTest, SaysByWhichRateReadsAreHeldBack) {
  watch_.Start();
  use().held_by_bytes = 3;
  Pass(seconds(1));
  EXPECT_TRUE(Last().bytes_held_back);
  EXPECT_FALSE(Last().requests_held_back);
  use().held_by_requests = 1;
  Pass(seconds(1));
  EXPECT_FALSE(Last().bytes_held_back);
  EXPECT_TRUE(Last().requests_held_back);
}

TEST_F(RateWatchTest, SaysNothingOfAStoreWithoutALimit) {
  store_.uses = {{.dataset = 1, .requests = 7}};
  watch_.Start();
  Pass(seconds(10));
  EXPECT_THAT(node_.All<StoreDemand>(), IsEmpty());
  EXPECT_THAT(store_.set, IsEmpty());
}

TEST_F(RateWatchTest, BeginsWithASmallPartUntilTheFirstWord) {
  watch_.OnDataset();
  EXPECT_EQ(store_.set[1], kFirst) << "before any read";
  watch_.Start();
  Pass(seconds(2));
  EXPECT_EQ(store_.set[1], kFirst);
  watch_.OnShare({.dataset = 1, .requests_milli = 12'500, .bytes = 777});
  EXPECT_EQ(store_.set[1], (StoreRate{.requests = 12.5, .bytes = 777}));
  Pass(seconds(20));
  EXPECT_EQ(store_.set[1], (StoreRate{.requests = 12.5, .bytes = 777})) << "until the next word";
  watch_.OnShare({.dataset = 1});
  EXPECT_EQ(store_.set[1], StoreRate{}) << "no limit is divided any more: its own holds";
}

TEST_F(RateWatchTest, HasTheWholeLimitIfNobodySaysAnything) {
  node_.up = false;
  watch_.Start();
  Pass(RateWatch::kFirstWordWithin - milliseconds(500));
  EXPECT_EQ(store_.set[1], kFirst);
  Pass(seconds(1));
  EXPECT_EQ(store_.set[1], StoreRate{});
  EXPECT_THAT(node_.All<StoreDemand>(), IsEmpty());
}

TEST_F(RateWatchTest, KeepsItsShareWhenTheNodeHasGoneAndTellsItWhenItIsBack) {
  watch_.Start();
  watch_.OnShare({.dataset = 1, .requests_milli = 5000, .bytes = 100});
  node_.up = false;
  Pass(RateWatch::kSilentFor - milliseconds(500));
  EXPECT_EQ(store_.set[1], (StoreRate{.requests = 5, .bytes = 100}));
  const std::size_t told = node_.All<StoreDemand>().size();
  node_.up = true;
  watch_.OnNodeUp();
  EXPECT_EQ(node_.All<StoreDemand>().size(), told + 1);
}

// What it had from the node it has to read from the store now.
TEST_F(RateWatchTest, HasTheSmallPartAtLeastWhenTheNodeHasBeenSilentForLong) {
  watch_.Start();
  watch_.OnShare({.dataset = 1, .requests_milli = 5000, .bytes = 40'000'000});
  node_.up = false;
  Pass(RateWatch::kSilentFor + seconds(1));
  EXPECT_EQ(store_.set[1], (StoreRate{.requests = kFirst.requests, .bytes = 4e7}))
      << "and all of a share that is larger";
  store_.set.clear();
  Pass(seconds(60));
  EXPECT_THAT(store_.set, IsEmpty()) << "once";
  node_.up = true;
  watch_.OnShare({.dataset = 1, .requests_milli = 7000, .bytes = 100});
  EXPECT_EQ(store_.set[1], (StoreRate{.requests = 7, .bytes = 100})) << "the next word holds";
}

TEST_F(RateWatchTest, AWordThatNoLimitIsDividedHoldsWhenTheNodeHasGone) {
  watch_.Start();
  watch_.OnShare({.dataset = 1, .requests_milli = 0, .bytes = 100});
  Pass(RateWatch::kSilentFor + seconds(1));
  EXPECT_EQ(store_.set[1], (StoreRate{.requests = 0, .bytes = kFirst.bytes}));
}

TEST_F(RateWatchTest, ADatasetThatComesLaterBeginsAtOnce) {
  watch_.Start();
  store_.uses.push_back({.dataset = 2, .most = {.requests = 30}});
  watch_.OnDataset();
  EXPECT_EQ(store_.set[2], StoreRate{.requests = 3});
  watch_.OnShare({.dataset = 9, .requests_milli = 1});
  EXPECT_FALSE(store_.set.contains(9)) << "of no dataset here";
}

}  // namespace
}  // namespace optcache::sidecar
