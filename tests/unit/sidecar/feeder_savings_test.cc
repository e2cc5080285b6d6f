// What the core counts of waits and savings.

#include "sidecar/clients/feeder.h"
#include "unit/sidecar/feeder_fixture.h"

namespace optcache::sidecar {
namespace {

using std::chrono::milliseconds;

TEST_F(FeederTest, CountsHowLongTrainersWait) {
  const ReaderId reader = world_.Attach(1);
  world_.Begin(reader, 0);
  world_.Run();
  world_.Ask(2, 11, Part(world_.Order(0), 0, 2), reader, 0, 0);
  world_.clock.Advance(milliseconds(250));
  world_.RunStore();
  EXPECT_DOUBLE_EQ(Counter("optcache_client_wait_seconds_total"), 0.25);
}

TEST_F(FeederTest, TellsWhatTheyWaitForAndWhatTheyDo) {
  const ReaderId reader = world_.Attach(1);
  world_.Begin(reader, 0);
  world_.Run();
  world_.Ask(2, 11, Part(world_.Order(0), 0, 2), reader, 0, 0);
  world_.clock.Advance(milliseconds(250));
  world_.RunStore();
  world_.clock.Advance(milliseconds(750));
  world_.feeder->batches().Release(2, Answer(0).batch);
  world_.clock.Advance(milliseconds(500));
  const auto time_of = [&](const std::string& process, const std::string& state) {
    double found = -1;
    world_.feeder->VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
          const bool is_it = labels == MetricLabels{{"process", process}, {"state", state}};
          if (name == "optcache_client_process_seconds_total" && is_it) found = value;
        });
    return found;
  };
  EXPECT_DOUBLE_EQ(time_of("worker", "waiting"), 0.25) << "client 1 attached, and 2 reads";
  EXPECT_DOUBLE_EQ(time_of("worker", "working"), 0.75);
  EXPECT_DOUBLE_EQ(time_of("worker", "idle"), 0.5);
  EXPECT_DOUBLE_EQ(time_of("trainer", "idle"), 0) << "it asks for nothing";
  EXPECT_DOUBLE_EQ(Counter("optcache_client_wait_cause_seconds_total", "store"), 0.25);
  EXPECT_DOUBLE_EQ(Counter("optcache_client_wait_cause_seconds_total", "arena"), 0);
  world_.feeder->OnClientGone(2);
  world_.clock.Advance(milliseconds(500));
  EXPECT_DOUBLE_EQ(time_of("worker", "idle"), 0.5);
}

// The arena has room for ten samples.
TEST_F(FeederTest, WhatIsReadLateForWantOfRoomWaitsForTheArena) {
  const ReaderId reader = world_.Attach(1);
  const auto order = world_.Order(0);
  world_.Begin(reader, 0);
  world_.Run();
  const auto ask = [&](std::uint64_t request, std::size_t first) {
    world_.Ask(2, request, Part(order, first, 5), reader, 0, first);
    world_.Run();
    world_.clock.Advance(milliseconds(100));
  };
  const auto waited_for = [&](std::string_view cause) {
    return Counter("optcache_client_wait_cause_seconds_total", cause);
  };
  ask(11, 0);
  world_.RunStore();
  EXPECT_DOUBLE_EQ(waited_for("store"), 0.1) << "it was read as early as could be";
  world_.feeder->batches().Release(2, Answer(0).batch);
  ask(12, 5);
  EXPECT_DOUBLE_EQ(waited_for("store"), 0.1) << "these were here";
  ASSERT_EQ(world_.store.pending.size(), 5U);
  ask(13, 10);
  world_.RunStore();
  EXPECT_DOUBLE_EQ(waited_for("arena"), 0.1);

  world_.feeder->batches().Release(2, Answer(1).batch);
  world_.feeder->batches().Release(2, Answer(2).batch);
  world_.Run();
  ASSERT_EQ(world_.store.pending.size(), 10U);
  const SampleId late = order[15];
  while (world_.store.pending.size() > 1)
    world_.store.End(world_.store.pending.front().id == late ? 1 : 0);
  ask(14, 15);
  world_.store.End();
  EXPECT_DOUBLE_EQ(waited_for("arena"), 0.1);
  EXPECT_DOUBLE_EQ(waited_for("store"), 0.2) << "one is late, and all others are here";
}

// As while headspace is measured. The arena has room for ten samples, and no more when that begins.
TEST_F(FeederTest, WhatIsReadLateAsStagingWasHeldDoesNotWaitForTheArena) {
  const ReaderId reader = world_.Attach(1);
  const auto order = world_.Order(0);
  world_.Begin(reader, 0);
  world_.Run();
  world_.RunStore();
  RankReader& read = *world_.feeder->readers().Find(reader);
  ASSERT_TRUE(read.lacks_room());
  const auto ask = [&](std::size_t first, std::size_t count) {
    const std::size_t answer = world_.clients.answers.size();
    world_.Ask(2, 11 + answer, Part(order, first, count), reader, 0, first);
    world_.Run();
    world_.clock.Advance(milliseconds(100));
    world_.RunStore();
    world_.feeder->batches().Release(2, Answer(answer).batch);
    world_.Run();
  };
  read.HoldStaging(true);
  ask(0, 10);
  EXPECT_EQ(read.staged(), 0U);
  EXPECT_FALSE(read.lacks_room());
  ask(10, 5);
  EXPECT_DOUBLE_EQ(Counter("optcache_client_wait_cause_seconds_total", "store"), 0.1);
  read.HoldStaging(false);
  ask(15, 5);
  EXPECT_EQ(read.staged(), 10U);
  EXPECT_DOUBLE_EQ(Counter("optcache_client_wait_cause_seconds_total", "store"), 0.2);
  EXPECT_DOUBLE_EQ(Counter("optcache_client_wait_cause_seconds_total", "arena"), 0);
}

TEST_F(FeederTest, SavesWhatIsDeliveredLessWhatTheStoreWasAskedFor) {
  const ReaderId reader = world_.Attach(1);
  world_.Begin(reader, 0);
  world_.Run();
  const auto ids = Part(world_.Order(0), 0, 5);
  world_.Ask(2, 11, ids, reader, 0, 0);
  world_.store.requests = 2;
  world_.store.arrived = 1;
  EXPECT_EQ(Counter("optcache_saved_requests"), -2);  // nothing is delivered yet
  world_.RunStore();
  ByteCount bytes = 0;
  for (const SampleId id : ids)
    bytes += world_.dataset.SizeOf(id);
  EXPECT_EQ(Counter("optcache_saved_requests"), 3);
  EXPECT_EQ(Counter("optcache_saved_bytes"), static_cast<double>(bytes) - 1);
  EXPECT_EQ(Counter("optcache_saved_cost"), -1) << "it is reported without a price";
}

TEST_F(FeederTest, SaysAtItsEndWhatItSaved) {
  const ReaderId reader = world_.Attach(1);
  world_.Begin(reader, 0);
  world_.Run();
  world_.Ask(2, 11, Part(world_.Order(0), 0, 5), reader, 0, 0);
  EXPECT_TRUE(world_.feeder->batches().SavedOfAll().empty()) << "nothing is delivered yet";
  world_.clock.Advance(milliseconds(250));
  world_.RunStore();
  const std::vector<DatasetSaved> all = world_.feeder->batches().SavedOfAll();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].dataset, world_.dataset.name());
  EXPECT_EQ(all[0].saved.requests, 5);
  EXPECT_EQ(all[0].cost, std::nullopt);
  EXPECT_EQ(all[0].wait, milliseconds(250));
  world_.node.up = true;
  world_.feeder->EndAll();
  ASSERT_EQ(world_.node.All<wire::Savings>().size(), 1U);
  EXPECT_EQ(world_.node.All<wire::Savings>()[0], (wire::Savings{.dataset = world_.dataset.key(),
                                                                .requests = 5,
                                                                .bytes = all[0].saved.bytes,
                                                                .wait_us = 250'000}));
}

TEST_F(FeederTest, SavesWhatTheStoreWouldHaveTakenForIt) {
  const ReaderId reader = world_.Attach(1);
  world_.Begin(reader, 0);
  world_.Run();
  world_.Ask(2, 11, Part(world_.Order(0), 0, 5), reader, 0, 0);
  world_.RunStore();
  world_.dataset.store_price = {.per_request = 0.5, .per_gib = 1 << 20U};
  EXPECT_DOUBLE_EQ(Counter("optcache_saved_cost"), 0.5 * Counter("optcache_saved_requests") +
                                                       Counter("optcache_saved_bytes") / 1024);
  EXPECT_EQ(Counter("optcache_saved_requests"), 5);
}

}  // namespace
}  // namespace optcache::sidecar
