#include "sidecar/ports/alarms.h"

#include <vector>

#include <gtest/gtest.h>

#include "support/manual_clock.h"

namespace optcache::sidecar {
namespace {

using std::chrono::seconds;

TEST(Alarms, CallsWhatIsDueInOrderOfTime) {
  ManualClock clock;
  Alarms alarms(clock);
  std::vector<int> calls;
  alarms.After(seconds(2), [&] { calls.push_back(2); });
  alarms.After(seconds(1), [&] { calls.push_back(1); });
  alarms.After(seconds(3), [&] { calls.push_back(3); });
  clock.Advance(seconds(2));
  alarms.RunDue();
  EXPECT_EQ(calls, (std::vector<int>{1, 2}));
}

TEST(Alarms, CallsWhatBecomesDueMeanwhile) {
  ManualClock clock;
  Alarms alarms(clock);
  int calls = 0;
  alarms.At(clock.Now(), [&] { alarms.At(clock.Now(), [&] { ++calls; }); });
  alarms.RunDue();
  EXPECT_EQ(calls, 1);
}

TEST(Alarms, DoesNotCallWhatWasCancelled) {
  ManualClock clock;
  Alarms alarms(clock);
  int calls = 0;
  const Alarms::Id id = alarms.After(seconds(1), [&] { ++calls; });
  alarms.Cancel(id);
  clock.Advance(seconds(2));
  alarms.RunDue();
  EXPECT_EQ(calls, 0);
  EXPECT_FALSE(alarms.Next().has_value());
}

TEST(Alarms, SaysWhenTheFirstBecomesEarlier) {
  ManualClock clock;
  int rearmed = 0;
  Alarms alarms(clock, [&] { ++rearmed; });
  alarms.After(seconds(5), [] {});
  alarms.After(seconds(9), [] {});
  EXPECT_EQ(rearmed, 1);
  alarms.After(seconds(1), [] {});
  EXPECT_EQ(rearmed, 2);
  EXPECT_EQ(alarms.Next(), clock.Now() + seconds(1));
}

}  // namespace
}  // namespace optcache::sidecar
