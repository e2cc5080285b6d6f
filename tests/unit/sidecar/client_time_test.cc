#include "sidecar/clients/client_time.h"

#include <gtest/gtest.h>

#include "support/manual_clock.h"

namespace optcache::sidecar {
namespace {

using std::chrono::seconds;

class ClientTimeTest : public testing::Test {
 protected:
  // In seconds: waiting, working, idle.
  std::array<double, kClientStates> Of(ClientKind kind) const {
    std::array<double, kClientStates> all{};
    const TimeByState spent = time_.Spent(now_)[static_cast<std::size_t>(kind)];
    for (std::size_t i = 0; i < kClientStates; ++i)
      all[i] = ToSeconds(spent[i]);
    return all;
  }
  using Seconds = std::array<double, kClientStates>;

  ClientTime time_;
  MonotonicTime now_ = ManualClock().Now();
};

TEST_F(ClientTimeTest, AWorkerWaitsThenWorksThenIsIdle) {
  time_.OnAsk(1, ClientKind::kWorker, now_);
  now_ += seconds(2);
  EXPECT_EQ(Of(ClientKind::kWorker), (Seconds{2, 0, 0})) << "also before the answer";
  time_.OnAnswer(1, /*holds=*/true, now_);
  now_ += seconds(3);
  time_.OnRelease(1, now_);
  now_ += seconds(4);
  EXPECT_EQ(Of(ClientKind::kWorker), (Seconds{2, 3, 4}));
  time_.OnAsk(1, ClientKind::kWorker, now_);
  EXPECT_EQ(Of(ClientKind::kWorker), (Seconds{2, 3, 4}));
  EXPECT_EQ(Of(ClientKind::kTrainer), Seconds{});
}

TEST_F(ClientTimeTest, WhoHasSamplesAndAsksForMoreWaits) {
  time_.OnAsk(1, ClientKind::kTrainer, now_);
  time_.OnAnswer(1, true, now_);
  time_.OnAsk(1, ClientKind::kTrainer, now_);
  time_.OnAsk(1, ClientKind::kTrainer, now_);
  now_ += seconds(1);
  time_.OnAnswer(1, false, now_);
  now_ += seconds(1);
  time_.OnAnswer(1, true, now_);
  now_ += seconds(1);
  time_.OnRelease(1, now_);
  now_ += seconds(1);
  EXPECT_EQ(Of(ClientKind::kTrainer), (Seconds{2, 2, 0}));
}

TEST_F(ClientTimeTest, ALongPauseCountsAsAMinuteAndWhatHasGoneStaysCounted) {
  time_.OnAsk(1, ClientKind::kWorker, now_);
  time_.OnAnswer(1, false, now_);
  now_ += seconds(3600);
  EXPECT_EQ(Of(ClientKind::kWorker), (Seconds{0, 0, 60}));
  time_.OnGone(1, now_);
  now_ += seconds(5);
  EXPECT_EQ(Of(ClientKind::kWorker), (Seconds{0, 0, 60})) << "it never falls, and grows no more";
  time_.OnRelease(1, now_);
  time_.OnAnswer(1, true, now_);
  EXPECT_EQ(Of(ClientKind::kWorker), (Seconds{0, 0, 60})) << "it is not known any more";
}

}  // namespace
}  // namespace optcache::sidecar
