#include "kube/internal/api_watch.h"

#include <vector>

#include "unit/kube/api_fixture.h"

namespace optcache::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Watching {
  std::vector<WatchEvent> events;
  std::optional<std::optional<ApiError>> end;
  std::unique_ptr<WatchHandle> handle;
};

class ApiWatchTest : public ApiFixture {
 protected:
  std::unique_ptr<Watching> Watch(WatchRequest request) {
    auto watching = std::make_unique<Watching>();
    watching->handle = client->Watch(
        std::move(request),
        {.on_event =
             [w = watching.get()](WatchEvent event) { w->events.push_back(std::move(event)); },
         .on_end =
             [w = watching.get()](std::optional<ApiError> error) { w->end = std::move(error); }});
    return watching;
  }
  std::string Version() {
    std::string version;
    server.store([&](FakeApiStore& store) { version = std::to_string(store.version()); });
    return version;
  }
  WatchRequest Pods(Duration idle_deadline = seconds(30)) {
    return {.resource = kPods,
            .selection = {},
            .resource_version = Version(),
            .timeout = seconds(300),
            .idle_deadline = idle_deadline};
  }
};

TEST_F(ApiWatchTest, BringsWhatHappens) {
  const auto watching = Watch(Pods());
  Put(Pod("a"));
  server.store([](FakeApiStore& store) { store.Remove(kPods, Key("a")); });
  RunUntil([&] { return watching->events.size() == 2; });
  EXPECT_EQ(watching->events[0].type, WatchEventType::kAdded);
  EXPECT_EQ(watching->events[1].type, WatchEventType::kDeleted);
  const FakeRequest sent = server.requests().back();
  EXPECT_EQ(sent.query.at("watch"), "true");
  EXPECT_EQ(sent.query.at("allowWatchBookmarks"), "true");
  EXPECT_EQ(sent.query.at("timeoutSeconds"), "300");
}

TEST_F(ApiWatchTest, BringsOnlyWhatIsSelected) {
  WatchRequest request = Pods();
  request.selection = {.ns = "vision", .labels = "app=x", .fields = "spec.nodeName=n"};
  const auto watching = Watch(request);
  Json pod = Pod("a");
  pod["metadata"]["labels"]["app"] = "x";
  pod["spec"]["nodeName"] = "n";
  Put(Pod("b"));
  Put(pod);
  RunUntil([&] { return !watching->events.empty(); });
  EXPECT_EQ(KeyOf(watching->events[0].object).name, "a");
}

TEST_F(ApiWatchTest, PacketsMayBeCutAnywhere) {
  server.set_piece_bytes(3);
  const auto watching = Watch(Pods());
  Json pod = Pod("a");
  pod["metadata"]["annotations"]["text"] = "größer 世界";
  Put(pod);
  RunUntil([&] { return watching->events.size() == 1; });
  EXPECT_EQ(AnnotationOf(watching->events[0].object, "text"), "größer 世界");
}

TEST_F(ApiWatchTest, EndsInOrderWithoutAnError) {
  const auto watching = Watch(Pods());
  RunUntil([&] { return server.open_watches() == 1; });
  server.EndWatches();
  RunUntil([&] { return watching->end.has_value(); });
  EXPECT_FALSE(watching->end->has_value());
}

TEST_F(ApiWatchTest, GoneComesByStatusAndAsAnEvent) {
  WatchRequest request = Pods();
  Put(Pod("a"));
  server.store([](FakeApiStore& store) { store.Compact(); });
  const auto by_status = Watch(request);
  RunUntil([&] { return by_status->end.has_value(); });
  EXPECT_TRUE((*by_status->end)->expired());
  const auto by_event = Watch(Pods());
  RunUntil([&] { return server.open_watches() == 1; });
  server.SendError(FakeError(410, "Expired", "too old").body);
  RunUntil([&] { return by_event->end.has_value(); });
  EXPECT_TRUE((*by_event->end)->expired());
  EXPECT_EQ((*by_event->end)->status.message(), "watch pods: watch: too old (410)");
}

TEST_F(ApiWatchTest, AHalfOpenConnectionEndsAfterTheIdleDeadline) {
  server.set_mute(true);
  const auto watching = Watch(Pods(milliseconds(300)));
  RunUntil([&] { return watching->end.has_value(); });
  EXPECT_EQ((*watching->end)->status.code(), Code::kDeadlineExceeded);
}

TEST_F(ApiWatchTest, ABrokenConnectionIsAnError) {
  const auto watching = Watch(Pods());
  RunUntil([&] { return server.open_watches() == 1; });
  server.BreakWatches();
  RunUntil([&] { return watching->end.has_value(); });
  ASSERT_TRUE(watching->end->has_value());
  EXPECT_TRUE((*watching->end)->transient());
}

TEST_F(ApiWatchTest, WhatIsNoEventIsAnError) {
  const auto watching = Watch(Pods());
  RunUntil([&] { return server.open_watches() == 1; });
  server.SendRaw("<html>\n");
  RunUntil([&] { return watching->end.has_value(); });
  EXPECT_EQ((*watching->end)->status.code(), Code::kDataLoss);
}

TEST_F(ApiWatchTest, MayBeEndedByItsOwnEvent) {
  std::unique_ptr<WatchHandle> handle;
  int events = 0;
  handle = client->Watch(Pods(), {.on_event =
                                      [&](const WatchEvent&) {
                                        ++events;
                                        handle.reset();
                                      },
                                  .on_end = [](const std::optional<ApiError>&) { FAIL(); }});
  server.store([](FakeApiStore& store) {
    for (int i = 0; i < 10; ++i)
      store.Put(kPods, Pod("p" + std::to_string(i)));
  });
  RunUntil([&] { return events > 0; });
  RunUntil([&] { return server.open_watches() == 0; });
  EXPECT_EQ(events, 1);
}

}  // namespace
}  // namespace optcache::kube
