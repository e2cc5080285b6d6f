#include "storage/internal/alarm_thread.h"

#include <atomic>
#include <future>

#include <gtest/gtest.h>

namespace optcache::storage::internal {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(AlarmThread, LooksWhenItIsWokenAndWhenItAskedFor) {
  std::promise<void> third;
  std::atomic<int> looks = 0;
  AlarmThread alarm(SystemClock(), [&](MonotonicTime now) {
    if (++looks == 3) third.set_value();
    return looks < 3 ? now + milliseconds(1) : now + hours(1);
  });
  alarm.WakeAt(SystemClock().Now());
  EXPECT_EQ(third.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
  alarm.Stop();
  EXPECT_EQ(looks, 3);
}

TEST(AlarmThread, DoesNotLookAfterStop) {
  std::atomic<int> looks = 0;
  AlarmThread alarm(SystemClock(), [&](MonotonicTime now) {
    ++looks;
    return now + hours(1);
  });
  alarm.Stop();
  alarm.WakeAt(SystemClock().Now());
  alarm.Stop();
  EXPECT_EQ(looks, 0);
}

TEST(AlarmThread, AWakeWhileItLooksIsNotLost) {
  std::promise<void> second;
  std::atomic<int> looks = 0;
  AlarmThread* self = nullptr;
  AlarmThread alarm(SystemClock(), [&](MonotonicTime now) {
    if (++looks == 1) {
      self->WakeAt(now);
    } else {
      second.set_value();
    }
    return now + hours(1);
  });
  self = &alarm;
  alarm.WakeAt(SystemClock().Now());
  EXPECT_EQ(second.get_future().wait_for(std::chrono::minutes(1)), std::future_status::ready);
}

}  // namespace
}  // namespace optcache::storage::internal
