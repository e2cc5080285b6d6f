#include "kube/event_series.h"

#include <gtest/gtest.h>

#include "support/manual_clock.h"

namespace optcache::kube {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const ObjectReference kDataset = {.api_version = "optcache.io/v1alpha1",
                                  .kind = "Dataset",
                                  .ns = "vision",
                                  .name = "imagenet",
                                  .uid = "u1"};
const EventText kFailure = {.type = EventType::kWarning,
                            .reason = "SourceUnreachable",
                            .action = "Index",
                            .note = "no answer"};

class EventSeriesTest : public testing::Test {
 protected:
  std::optional<EventWrite> Record(const EventText& text = kFailure,
                                   const ObjectReference& about = kDataset) {
    return series.Record(about, text, clock.Now(), clock.UnixSeconds());
  }
  EventText Note(std::string note) const {
    EventText text = kFailure;
    text.note = std::move(note);
    return text;
  }

  ManualClock clock;
  EventSeries series{EventSeriesOptions{}};
};

TEST_F(EventSeriesTest, TheFirstIsWrittenAtOnce) {
  const auto write = Record();
  ASSERT_TRUE(write.has_value());
  EXPECT_EQ(write->regarding, kDataset);
  EXPECT_EQ(write->text.reason, "SourceUnreachable");
  EXPECT_EQ(write->count, 1U);
  EXPECT_EQ(write->first_seconds, clock.UnixSeconds());
  EXPECT_FALSE(series.NextDue().has_value());
}

TEST_F(EventSeriesTest, AHundredRepetitionsAreOneEventWithACount) {
  const auto first = Record();
  for (int i = 1; i < 100; ++i) {
    clock.Advance(std::chrono::milliseconds(50));
    EXPECT_FALSE(Record().has_value());
  }
  clock.Advance(*series.NextDue() - clock.Now());
  const auto due = series.TakeDue(clock.Now());
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].series, first->series);
  EXPECT_EQ(due[0].count, 100U);
  EXPECT_EQ(due[0].first_seconds, first->first_seconds);
  EXPECT_GT(due[0].last_seconds, due[0].first_seconds);
  EXPECT_FALSE(series.NextDue().has_value());  // Until it happens again.
}

TEST_F(EventSeriesTest, UpdatesOfASeriesComeRarerAndRarer) {
  Record();
  std::vector<Duration> gaps;
  MonotonicTime last = clock.Now();
  for (int i = 0; i < 3600; ++i) {
    Record();
    clock.Advance(seconds(1));
    if (series.TakeDue(clock.Now()).empty()) continue;
    gaps.push_back(clock.Now() - last);
    last = clock.Now();
  }
  ASSERT_GE(gaps.size(), 8U);
  EXPECT_LE(gaps.size(), 16U);  // In an hour of a failure a second.
  EXPECT_LE(gaps[0], seconds(11));
  EXPECT_LE(gaps[1], seconds(21));
  EXPECT_GE(gaps.back(), minutes(6));
}

TEST_F(EventSeriesTest, ASilentSeriesEndsAndTheNextIsANewEvent) {
  const auto first = Record();
  clock.Advance(minutes(6));
  const auto second = Record();
  ASSERT_TRUE(second.has_value());
  EXPECT_NE(second->series, first->series);
  EXPECT_EQ(second->count, 1U);
}

TEST_F(EventSeriesTest, AnotherTextReasonTypeOrObjectIsAnotherEvent) {
  Record();
  EXPECT_TRUE(Record(Note("refused")).has_value());
  EventText other = kFailure;
  other.reason = "SourceChanged";
  EXPECT_TRUE(Record(other).has_value());
  other = kFailure;
  other.type = EventType::kNormal;
  EXPECT_TRUE(Record(other).has_value());
  ObjectReference again = kDataset;
  again.uid = "u2";
  EXPECT_TRUE(Record(kFailure, again).has_value());
}

TEST_F(EventSeriesTest, AnObjectThatHasTooMuchToSayIsCutShort) {
  int written = 0;
  for (int i = 0; i < 100; ++i)
    written += Record(Note(std::to_string(i))).has_value() ? 1 : 0;
  EXPECT_EQ(written, 25);
  EXPECT_EQ(series.suppressed(), 75U);
  // Others may speak.
  ObjectReference other = kDataset;
  other.name = "coco";
  EXPECT_TRUE(Record(kFailure, other).has_value());
  // One more every five minutes.
  clock.Advance(minutes(5));
  EXPECT_TRUE(Record(Note("a")).has_value());
  EXPECT_FALSE(Record(Note("b")).has_value());
}

TEST_F(EventSeriesTest, AnEventThatCouldNotBeWrittenIsNewNextTime) {
  const auto first = Record();
  series.Forget(first->series);
  const auto second = Record();
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->count, 1U);
}

TEST_F(EventSeriesTest, RemembersOnlySoMany) {
  for (int i = 0; i < 10'000; ++i) {
    ObjectReference other = kDataset;
    other.name = std::to_string(i);
    EXPECT_TRUE(Record(kFailure, other).has_value());
    clock.Advance(std::chrono::milliseconds(1));
  }
  EXPECT_LE(series.size(), 4096U);
  EXPECT_GE(series.size(), 3584U);
  // The newest are known, the oldest forgotten.
  ObjectReference newest = kDataset;
  newest.name = "9999";
  EXPECT_FALSE(Record(kFailure, newest).has_value());
}

TEST_F(EventSeriesTest, AReferenceNamesKindAndUid) {
  const Json job = {{"metadata", {{"namespace", "vision"}, {"name", "a"}, {"uid", "u"}}}};
  EXPECT_EQ(
      ReferenceTo(kJobs, job),
      (ObjectReference{
          .api_version = "batch/v1", .kind = "Job", .ns = "vision", .name = "a", .uid = "u"}));
}

}  // namespace
}  // namespace optcache::kube
