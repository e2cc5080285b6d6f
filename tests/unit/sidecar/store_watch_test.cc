#include "sidecar/fetch/store_watch.h"

#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::StoreState;

class FakeHealth final : public StorePort {
 public:
  void Read(const DatasetPort&, Part, OnWait) override {}
  void ReadTogether(const DatasetPort&, std::vector<Part>, OnWait) override {}
  ByteCount Arrived(const DatasetPort&) const override { return 0; }
  std::vector<wire::StoreHealth> Health() const override { return all; }

  std::vector<wire::StoreHealth> all = {{.dataset = 1}, {.dataset = 2}};
};

class StoreWatchTest : public testing::Test {
 protected:
  void Pass(Duration time) {
    for (Duration passed{}; passed < time; passed += milliseconds(500)) {
      clock_.Advance(milliseconds(500));
      alarms_.RunDue();
    }
  }
  std::size_t told() const { return node_.All<wire::StoreHealth>().size(); }

  ManualClock clock_;
  Alarms alarms_{clock_};
  FakeNode node_;
  FakeHealth store_;
  StoreWatch watch_{node_, store_, alarms_};
};

TEST_F(StoreWatchTest, TellsOfChangesWithinASecond) {
  watch_.Start();
  Pass(seconds(5));
  EXPECT_EQ(told(), 0U) << "a node takes all for untried";
  store_.all[1] = {
      .dataset = 2, .state = StoreState::kSilent, .silent_ms = 2000, .cause = "refused"};
  Pass(seconds(1));
  ASSERT_EQ(told(), 1U);
  EXPECT_EQ(node_.All<wire::StoreHealth>()[0], store_.all[1]);
  store_.all[1] = {.dataset = 2, .state = StoreState::kAnswers};
  Pass(seconds(1));
  ASSERT_EQ(told(), 2U);
  store_.all[1] = {.dataset = 2};
  Pass(seconds(1));
  ASSERT_EQ(told(), 3U);
  EXPECT_EQ(node_.All<wire::StoreHealth>()[2].state, StoreState::kUntried);
}

TEST_F(StoreWatchTest, TellsAgainNowAndThen) {
  store_.all[0].state = StoreState::kAnswers;
  watch_.Start();
  Pass(StoreWatch::kTellEvery * 4);
  EXPECT_EQ(told(), 5U);
}

TEST_F(StoreWatchTest, TellsANodeThatHasComeBackEverything) {
  store_.all[0].state = StoreState::kAnswers;
  watch_.Start();
  node_.up = false;
  Pass(seconds(3));
  EXPECT_EQ(told(), 1U);
  node_.up = true;
  watch_.OnNodeUp();
  EXPECT_EQ(told(), 2U);
}

}  // namespace
}  // namespace optcache::sidecar
