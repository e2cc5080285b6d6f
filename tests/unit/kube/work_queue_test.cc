#include "kube/work_queue.h"

#include <set>

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/manual_clock.h"
#include "support/seeds.h"

namespace optcache::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ObjectKey Key(const std::string& name) {
  return {.ns = "a", .name = name};
}

class WorkQueueTest : public testing::Test {
 protected:
  void Add(const std::string& name) { queue.Add(Key(name), clock.Now()); }
  // The name of what was taken, "" if nothing.
  std::string Take() {
    const auto key = queue.Take(clock.Now());
    return key ? key->name : "";
  }
  void Done(const std::string& name) { queue.Done(Key(name), clock.Now()); }
  // Fails `name` and says for how long it must then wait.
  Duration Fail(const std::string& name) {
    queue.AddRateLimited(Key(name), clock.Now());
    return queue.NextDue().value_or(clock.Now()) - clock.Now();
  }
  double Counter(std::string_view wanted) {
    double found = -1;
    queue.VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
          EXPECT_EQ(labels.front(), (std::pair<std::string, std::string>("name", "datasets")));
          if (name == wanted) found = value;
        },
        clock.Now());
    return found;
  }

  ManualClock clock;
  WorkQueue queue{{.name = "datasets"}};
};

TEST_F(WorkQueueTest, GivesKeysInTheOrderTheyCame) {
  Add("x");
  Add("y");
  EXPECT_EQ(Take(), "x");
  EXPECT_EQ(Take(), "y");
  EXPECT_EQ(Take(), "");
}

TEST_F(WorkQueueTest, AThousandAddsOfOneKeyAreAtMostTwoRuns) {
  int runs = 0;
  for (int i = 0; i < 500; ++i)
    Add("x");
  ASSERT_EQ(Take(), "x");
  ++runs;
  for (int i = 0; i < 500; ++i)
    Add("x");
  EXPECT_EQ(Take(), "");  // Not while it is being worked on.
  Done("x");
  while (Take() == "x") {
    ++runs;
    Done("x");
  }
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(Counter("workqueue_adds_total"), 2);
}

TEST_F(WorkQueueTest, OneWorkerAKey) {
  const std::uint64_t seed = TestSeed(11);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  std::set<std::string> working;
  std::set<std::string> owed;  // added since its last run began
  for (int step = 0; step < 20'000; ++step) {
    clock.Advance(milliseconds(random.Below(3)));
    const std::string name = std::to_string(random.Below(8));
    switch (random.Below(4)) {
      case 0:
        Add(name);
        owed.insert(name);
        break;
      case 1:
        queue.AddAfter(Key(name), milliseconds(random.Below(20)), clock.Now());
        owed.insert(name);
        break;
      case 2:
        if (const std::string taken = Take(); !taken.empty()) {
          ASSERT_TRUE(working.insert(taken).second) << taken << " has two workers";
          owed.erase(taken);
        }
        break;
      default:
        if (working.erase(name) > 0) Done(name);
    }
  }
  // Nothing that was added is lost.
  for (const std::string& name : working)
    Done(name);
  clock.Advance(seconds(1));
  for (std::string taken = Take(); !taken.empty(); taken = Take()) {
    owed.erase(taken);
    Done(taken);
  }
  EXPECT_TRUE(owed.empty());
}

TEST_F(WorkQueueTest, AKeyThatFailsWaitsFrom5MillisecondsTo1000Seconds) {
  for (std::int64_t wait_ms = 5; wait_ms < 1'000'000; wait_ms *= 2) {
    EXPECT_EQ(Fail("x"), milliseconds(wait_ms));
    clock.Advance(milliseconds(wait_ms));
    ASSERT_EQ(Take(), "x");
    Done("x");
  }
  EXPECT_EQ(Fail("x"), seconds(1000));
  EXPECT_EQ(queue.Failures(Key("x")), 19U);
}

TEST_F(WorkQueueTest, AfterAThousandFailuresTheWaitIsStillTheLimit) {
  WorkQueue patient({.retries_per_second = 1e9, .retries_burst = 1e9});
  for (int i = 0; i < 2000; ++i)
    patient.AddRateLimited(Key("x"), clock.Now());
  clock.Advance(seconds(1000));
  ASSERT_TRUE(patient.Take(clock.Now()).has_value());
  patient.Done(Key("x"), clock.Now());
  patient.AddRateLimited(Key("x"), clock.Now());
  EXPECT_EQ(*patient.NextDue() - clock.Now(), seconds(1000));
}

TEST_F(WorkQueueTest, ForgetMakesTheNextFailureTheFirst) {
  Fail("x");
  Fail("x");
  queue.Forget(Key("x"));
  EXPECT_EQ(queue.Failures(Key("x")), 0U);
  clock.Advance(seconds(1));
  ASSERT_EQ(Take(), "x");
  Done("x");
  EXPECT_EQ(Fail("x"), milliseconds(5));
}

TEST_F(WorkQueueTest, AHundredRetriesAtOnceThenTenASecond) {
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(Fail("k" + std::to_string(i)), milliseconds(5));
  clock.Advance(milliseconds(5));  // Which also brings a twentieth of a token.
  for (int i = 0; i < 100; ++i)
    ASSERT_NE(Take(), "");
  for (int i = 0; i < 20; ++i)
    queue.AddRateLimited(Key("m" + std::to_string(i)), clock.Now());
  for (int i = 0; i < 20; ++i) {
    clock.Advance(milliseconds(i == 0 ? 90 : 90 + 4));
    EXPECT_EQ(Take(), "") << i;
    clock.Advance(milliseconds(6));
    EXPECT_EQ(Take(), "m" + std::to_string(i));
  }
}

TEST_F(WorkQueueTest, APoisonKeyDoesNotStarveOthers) {
  Add("poison");
  int others = 0;
  for (int i = 0; i < 1000; ++i) {
    Add("good");
    for (std::string taken = Take(); !taken.empty(); taken = Take()) {
      Done(taken);
      if (taken == "poison") {
        Fail("poison");
      } else {
        ++others;
      }
    }
    clock.Advance(milliseconds(10));
  }
  EXPECT_EQ(others, 1000);
  EXPECT_LE(queue.Failures(Key("poison")), 12U);  // In ten seconds.
}

TEST_F(WorkQueueTest, AddAfterWaitsAndTheEarliestCounts) {
  queue.AddAfter(Key("x"), seconds(10), clock.Now());
  queue.AddAfter(Key("x"), seconds(3), clock.Now());
  queue.AddAfter(Key("x"), seconds(30), clock.Now());
  EXPECT_EQ(*queue.NextDue() - clock.Now(), seconds(3));
  clock.Advance(seconds(3) - Duration(1));
  EXPECT_EQ(Take(), "");
  clock.Advance(Duration(1));
  EXPECT_EQ(Take(), "x");
  Done("x");
  clock.Advance(seconds(60));
  EXPECT_EQ(Take(), "");
  EXPECT_FALSE(queue.NextDue().has_value());
}

TEST_F(WorkQueueTest, AddAfterNothingIsAdd) {
  queue.AddAfter(Key("x"), Duration::zero(), clock.Now());
  EXPECT_EQ(Take(), "x");
}

TEST_F(WorkQueueTest, ReportsTheStockMetrics) {
  Add("x");
  Add("y");
  EXPECT_EQ(Counter("workqueue_depth"), 2);
  clock.Advance(seconds(2));
  Take();
  clock.Advance(seconds(1));
  Take();
  clock.Advance(seconds(4));
  EXPECT_EQ(Counter("workqueue_depth"), 0);
  EXPECT_EQ(Counter("workqueue_unfinished_work_seconds"), 9);
  EXPECT_EQ(Counter("workqueue_longest_running_processor_seconds"), 5);
  EXPECT_EQ(Counter("workqueue_queue_duration_seconds_sum"), 5);
  Done("x");
  EXPECT_EQ(Counter("workqueue_work_duration_seconds_sum"), 5);
  EXPECT_EQ(Counter("workqueue_work_duration_seconds_count"), 1);
  Fail("x");
  EXPECT_EQ(Counter("workqueue_retries_total"), 1);
}

}  // namespace
}  // namespace optcache::kube
