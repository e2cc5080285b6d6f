#include "kube/events.h"

#include "unit/kube/api_fixture.h"
#include "unit/kube/scripted_client.h"

namespace optcache::kube {
namespace {

using std::chrono::milliseconds;

class EventsTest : public ApiFixture {
 protected:
  EventsTest() {
    options.controller = "optcache.io/operator";
    options.instance = "optcache-operator-x";
    options.series.update_first = milliseconds(50);
    recorder = std::make_unique<EventRecorder>(loop, SystemClock(), *client, options);
  }
  void Record(const std::string& note = "no answer", const std::string& ns = "vision") {
    recorder->Record({.api_version = "optcache.io/v1alpha1",
                      .kind = "Dataset",
                      .ns = ns,
                      .name = "imagenet",
                      .uid = "u1"},
                     {.type = EventType::kWarning,
                      .reason = "SourceUnreachable",
                      .action = "Index",
                      .note = note});
  }
  std::vector<Json> Events() {
    std::vector<Json> events;
    server.store([&](FakeApiStore& store) { events = store.List(kEvents); });
    return events;
  }
  double Counter(const std::string& result) {
    double found = -1;
    recorder->VisitCounters(
        [&](MetricKind, std::string_view, const MetricLabels& labels, double value) {
          if (labels.front().second == result) found = value;
        });
    return found;
  }

  EventRecorderOptions options;
  std::unique_ptr<EventRecorder> recorder;
};

TEST_F(EventsTest, NoWriteOvertakesTheOneBefore) {
  ScriptedClient slow;
  recorder = std::make_unique<EventRecorder>(loop, SystemClock(), slow, options);
  for (int i = 0; i < 3; ++i)
    Record();
  RunFor(milliseconds(200));
  ASSERT_EQ(slow.waiting.size(), 1U) << "the count waits for the event itself";
  EXPECT_FALSE(Json::parse(slow.Next().body).contains("series"));
  slow.Answer(Json::object());
  ASSERT_EQ(slow.waiting.size(), 1U);
  EXPECT_EQ(NumberAt(Json::parse(slow.Next().body), "/series/count"), 3);
  slow.Answer(Json::object());
  EXPECT_TRUE(slow.waiting.empty());
}

TEST_F(EventsTest, StandAtTheObjectOfTheUser) {
  Record();
  RunUntil([&] { return Events().size() == 1; });
  const Json event = Events().front();
  EXPECT_EQ(KeyOf(event).ns, "vision");
  EXPECT_TRUE(KeyOf(event).name.starts_with("imagenet."));
  EXPECT_EQ(event["regarding"], Json({{"apiVersion", "optcache.io/v1alpha1"},
                                      {"kind", "Dataset"},
                                      {"namespace", "vision"},
                                      {"name", "imagenet"},
                                      {"uid", "u1"}}));
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "SourceUnreachable");
  EXPECT_EQ(event["action"], "Index");
  EXPECT_EQ(event["note"], "no answer");
  EXPECT_EQ(event["reportingController"], "optcache.io/operator");
  EXPECT_EQ(event["reportingInstance"], "optcache-operator-x");
  EXPECT_FALSE(event.contains("series"));
  EXPECT_FALSE(TextAt(event, "/eventTime").empty());
}

TEST_F(EventsTest, AHundredRepetitionsAreOneEventWithACount) {
  for (int i = 0; i < 100; ++i)
    Record();
  RunUntil([&] {
    const auto events = Events();
    return events.size() == 1 && NumberAt(events[0], "/series/count") == 100;
  });
  EXPECT_EQ(server.Writes(), 2U);
  EXPECT_EQ(Events().front()["regarding"]["uid"], "u1");
}

TEST_F(EventsTest, AboutWhatHasNoNamespaceStandInDefault) {
  Record("no answer", "");
  RunUntil([&] { return Events().size() == 1; });
  EXPECT_EQ(KeyOf(Events().front()).ns, "default");
}

TEST_F(EventsTest, LongNotesAreCut) {
  Record(std::string(5000, 'x'));
  RunUntil([&] { return Events().size() == 1; });
  EXPECT_EQ(TextAt(Events().front(), "/note").size(), 1024U);
}

TEST_F(EventsTest, FloodsAreCutShortAndCounted) {
  for (int i = 0; i < 100; ++i)
    Record(std::to_string(i));
  RunUntil([&] { return Counter("written") == 25; });
  EXPECT_EQ(Counter("suppressed"), 75);
  EXPECT_EQ(Events().size(), 25U);
}

TEST_F(EventsTest, OneThatCannotBeWrittenIsCountedAndTriedAnewNextTime) {
  server.FailNext("apply", "events", {.response = FakeError(403, "Forbidden", "no rights")});
  Record();
  RunUntil([&] { return Counter("failed") == 1; });
  EXPECT_TRUE(Events().empty());
  Record();
  RunUntil([&] { return Counter("written") == 1; });
}

TEST_F(EventsTest, TheRecorderMayDieBeforeItsEventsAreWritten) {
  server.FailNext("apply", "events", {.kind = FakeFault::Kind::kStall});
  Record();
  RunUntil([&] { return server.Count("apply") == 1; });
  recorder.reset();
  RunFor(milliseconds(20));
}

}  // namespace
}  // namespace optcache::kube
