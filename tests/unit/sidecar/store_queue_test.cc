#include "sidecar/store_queue.h"

#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {
namespace {

class StoreQueueTest : public testing::Test {
 protected:
  StoreQueue::Ticket Add(SampleId id, bool urgent = false) {
    return queue_.Add({.dataset = &dataset_,
                       .id = id,
                       .into = memory_.AllocateAsked(10),
                       .done =
                           [this, id](const Result<std::uint32_t>& crc) {
                             ended_.emplace_back(id, crc.has_value());
                           }},
                      urgent);
  }
  std::vector<SampleId> Running() const {
    std::vector<SampleId> ids;
    for (const auto& read : store_.pending)
      ids.push_back(read.id);
    return ids;
  }

  FakeDataset dataset_{"images", std::vector<ByteCount>(10, 10)};
  FakeArena arena_{1};
  SampleMemory memory_{arena_, 1000, {}};
  FakeStore store_;
  StoreQueue queue_{store_, 2};
  std::vector<std::pair<SampleId, bool>> ended_;
};

TEST_F(StoreQueueTest, BoundsHowManyReadsRunAtOnce) {
  for (SampleId id = 0; id < 5; ++id)
    Add(id);
  EXPECT_EQ(Running(), (std::vector<SampleId>{0, 1}));
  store_.End(0);
  EXPECT_EQ(Running(), (std::vector<SampleId>{1, 2}));
  EXPECT_EQ(queue_.waiting(), 2U);
}

TEST_F(StoreQueueTest, StartsUrgentReadsFirst) {
  for (SampleId id = 0; id < 4; ++id)
    Add(id);
  Add(9, true);
  store_.End(0);
  EXPECT_EQ(Running(), (std::vector<SampleId>{1, 9}));
}

TEST_F(StoreQueueTest, AReadMayBecomeUrgentAndIsStillDoneOnce) {
  Add(0);
  Add(1);
  Add(2);
  const auto late = Add(3);
  queue_.MakeUrgent(late);
  store_.EndAll();
  EXPECT_EQ(ended_,
            (std::vector<std::pair<SampleId, bool>>{{0, true}, {1, true}, {3, true}, {2, true}}));
}

TEST_F(StoreQueueTest, CancelsOnlyWhatHasNotBegun) {
  const auto running = Add(0);
  Add(1);
  const auto waiting = Add(2);
  EXPECT_FALSE(queue_.Cancel(running));
  EXPECT_TRUE(queue_.Cancel(waiting));
  store_.EndAll();
  EXPECT_EQ(store_.reads.count(2), 0U);
}

TEST_F(StoreQueueTest, HandsErrorsOn) {
  Add(0);
  store_.End(0, Status(Code::kNotFound, "gone"));
  EXPECT_EQ(ended_, (std::vector<std::pair<SampleId, bool>>{{0, false}}));
}

}  // namespace
}  // namespace optcache::sidecar
