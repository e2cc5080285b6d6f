// What the core counts of waits and savings.

#include "sidecar/feeder.h"
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
  EXPECT_TRUE(world_.feeder->desk().SavedOfAll().empty()) << "nothing is delivered yet";
  world_.clock.Advance(milliseconds(250));
  world_.RunStore();
  const std::vector<DatasetSaved> all = world_.feeder->desk().SavedOfAll();
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
