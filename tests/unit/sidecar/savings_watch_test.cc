#include "sidecar/clients/savings_watch.h"

#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {
namespace {

using std::chrono::milliseconds;
using wire::Savings;

class SavingsWatchTest : public testing::Test {
 protected:
  void Pass(Duration time) {
    clock_.Advance(time);
    alarms_.RunDue();
  }
  Savings Last() const { return node_.All<Savings>().back(); }
  std::size_t told() const { return node_.All<Savings>().size(); }

  ManualClock clock_;
  Alarms alarms_{clock_};
  FakeNode node_;
  std::vector<DatasetSaved> all_;
  SavingsWatch watch_{node_, [this] { return all_; }, alarms_};
};

TEST_F(SavingsWatchTest, TellsWhatWasSavedInAllOverOneConnection) {
  watch_.Start();
  EXPECT_EQ(told(), 0U);
  all_ = {
      {.dataset = "a/b", .saved = {.requests = -2, .bytes = 9}, .wait = milliseconds(3), .key = 7}};
  Pass(SavingsWatch::kTellEvery);
  ASSERT_EQ(told(), 1U);
  EXPECT_EQ(Last(), (Savings{.dataset = 7, .requests = -2, .bytes = 9, .wait_us = 3000}));
  all_[0].saved.requests = 5;
  Pass(SavingsWatch::kTellEvery);
  ASSERT_EQ(told(), 2U);
  EXPECT_EQ(Last().requests, 5);
}

TEST_F(SavingsWatchTest, TellsANewConnectionWhatIsNew) {
  all_ = {{.saved = {.requests = 5, .bytes = 50}, .wait = milliseconds(1), .key = 7}};
  watch_.Start();
  node_.up = false;
  all_[0].saved = {.requests = 8, .bytes = 40};
  Pass(SavingsWatch::kTellEvery);
  EXPECT_EQ(told(), 1U);
  node_.up = true;
  watch_.OnNodeUp();
  ASSERT_EQ(told(), 2U);
  EXPECT_EQ(Last(), (Savings{.dataset = 7, .requests = 3, .bytes = -10, .wait_us = 0}));
  watch_.OnNodeUp();
  EXPECT_EQ(Last(), (Savings{.dataset = 7}));
}

}  // namespace
}  // namespace optcache::sidecar
