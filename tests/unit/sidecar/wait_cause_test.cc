#include "sidecar/clients/wait_cause.h"

#include <gtest/gtest.h>

#include "unit/sidecar/throttled_world.h"

namespace optcache::sidecar {
namespace {

TEST(WaitCause, RoomHelpsOnlyIfThatIsTheFirstLineToWaitIn) {
  struct Case {
    const char* what;
    RoomFacts facts;
    bool helps;
  };
  const Case cases[] = {
      {"half of the samples are on their way", {.fetching = 5, .staged = 10}, true},
      {"most of them are here", {.fetching = 4, .staged = 10}, false},
      {"there is room for none", {.fetching = 0, .staged = 0}, true},
      {"reads wait for the store", {.is_behind = true, .fetching = 9, .staged = 10}, false},
      {"a request without memory", {.in_line = true, .staged = 10}, true},
      {"the same, and reads wait for the store", {.in_line = true, .is_behind = true}, false},
  };
  for (const Case& each : cases)
    EXPECT_EQ(WouldRoomHelp(each.facts), each.helps) << each.what;
}

TEST(WaitCause, IsElseWhereTheLastSampleCameFrom) {
  for (const bool helps : {false, true}) {
    const bool had_no_room = !helps;
    EXPECT_EQ(CauseOf(helps, had_no_room, Source::kStore), WaitCause::kStore);
    EXPECT_EQ(CauseOf(helps, had_no_room, Source::kPeer), WaitCause::kNetwork);
    EXPECT_EQ(CauseOf(helps, had_no_room, Source::kNode), WaitCause::kNode);
  }
  for (const Source source : {Source::kStore, Source::kPeer, Source::kNode})
    EXPECT_EQ(CauseOf(true, true, source), WaitCause::kArena);
}

// --- A whole job, in virtual time

constexpr std::size_t kSamples = 4000;
constexpr ByteCount kSize = 1000;

ThrottledWorld::Scene Job() {
  return {.sizes = std::vector<ByteCount>(kSamples, kSize),
          .arena = 2'000'000,
          .epoch = std::chrono::seconds(4),
          .speed = {.bandwidth = 100e6}};
}

// The waits of one epoch by cause, in seconds, and the share of the time that ranks waited for.
struct Waits {
  std::map<std::string, double> by_cause;
  double all = 0;
  double share = 0;
};

Waits WaitsIn(const ThrottledWorld::Scene& scene) {
  ThrottledWorld world(scene);
  world.Run(0);
  Waits waits;
  double time = 0;
  world.VisitCounters(
      [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
        if (name == "optcache_client_wait_seconds_total") waits.all += value;
        if (name == "optcache_client_wait_cause_seconds_total")
          waits.by_cause[labels.front().second] += value;
        if (name != "optcache_client_process_seconds_total") return;
        time += value;
        if (labels.back().second == "waiting") waits.share += value;
      });
  waits.share /= time;
  return waits;
}

TEST(WaitCause, ASlowStoreIsTheStore) {
  ThrottledWorld::Scene scene = Job();
  scene.speed.bandwidth = 0.4e6;  // 2.8 MB are read, in 4 s if compute limits it
  const Waits waits = WaitsIn(scene);
  EXPECT_GT(waits.share, 0.2);
  EXPECT_GT(waits.by_cause.at("store"), 0.95 * waits.all);
}

TEST(WaitCause, AnArenaForTooFewReadsAtATimeIsTheArena) {
  ThrottledWorld::Scene scene = Job();
  scene.arena = 20'000;  // of 20 samples; ranks ask for 32 at once
  scene.share = 0;
  scene.speed.latency = std::chrono::milliseconds(20);  // 32 reads at a time: 1600 a second
  const Waits waits = WaitsIn(scene);
  EXPECT_GT(waits.share, 0.2);
  EXPECT_GT(waits.by_cause.at("arena"), 0.75 * waits.all);
}

TEST(WaitCause, ASlowConsumerDoesNotWait) {
  const Waits waits = WaitsIn(Job());
  EXPECT_LT(waits.share, 0.05);
}

}  // namespace
}  // namespace optcache::sidecar
