#include "sidecar/computed/next_uses.h"

#include <gtest/gtest.h>

#include "unit/sidecar/computed_world.h"

namespace optcache::sidecar {
namespace {

constexpr std::uint64_t kUsed = 12;

// Looks at the readers of a desk's first dataset.
class NextUsesTest : public testing::Test {
 protected:
  StreamId AttachAndBegin(AttachRequest request) {
    const Rank rank = request.rank;
    const std::uint64_t length = kUsed / request.recipe.world;
    const StreamId stream = world_.Attach(kClient, handle_, std::move(request));
    world_.Begin(stream, rank, 0, length);
    uses_.Refresh();
    return stream;
  }
  // Samples by their next use.
  std::vector<SampleId> Sorted() const {
    const std::vector<UseTime> times = uses_.OfAll();
    std::vector<SampleId> ids;
    for (SampleId id = 0; id < times.size(); ++id) {
      EXPECT_EQ(times[id], uses_.Of(id));
      if (times[id] != kNoUse) ids.push_back(id);
    }
    std::ranges::sort(ids, {}, [&](SampleId id) { return times[id]; });
    return ids;
  }

  static constexpr ClientId kClient = 1;
  ComputedWorld world_{1000};
  ComputedHandle handle_ = world_.Open(kClient, kUsed);
  NextUses uses_{world_.desk.readers(), *world_.desk.Dataset(kClient, handle_).value(),
                 world_.alarms};
};

TEST_F(NextUsesTest, NothingIsKnownOfAnOrderThatNobodyHasAnnounced) {
  uses_.Refresh();
  EXPECT_TRUE(Sorted().empty());
  EXPECT_FALSE(uses_.steady());
}

TEST_F(NextUsesTest, OneReadersUsesAreInItsOrder) {
  const StreamId stream = AttachAndBegin(Shuffled(kUsed, 3));
  EXPECT_EQ(Sorted(), world_.Ids(stream, 0));
  EXPECT_TRUE(uses_.steady());
}

TEST_F(NextUsesTest, WhatWasAskedForIsUsedNextInTheNextPass) {
  const StreamId stream = AttachAndBegin(Shuffled(kUsed, 3));
  RankReader& reader = *world_.desk.readers().Find(world_.desk.readers().Find(stream, 0));
  const std::vector<SampleId> now = reader.current()->order()->ids;
  const std::vector<SampleId> then = reader.next()->order()->ids;
  for (std::size_t asked = 0; asked < kUsed; ++asked) {
    reader.current()->MarkAsked(asked);
    std::vector<SampleId> expected(now.begin() + static_cast<std::ptrdiff_t>(asked) + 1, now.end());
    for (const SampleId id : then) {
      if (std::ranges::find(expected, id) == expected.end()) expected.push_back(id);
    }
    EXPECT_EQ(Sorted(), expected);
  }
}

TEST_F(NextUsesTest, TheFasterReaderIsThereSooner) {
  const StreamId slow = AttachAndBegin(Shuffled(kUsed, 4));
  const StreamId fast = AttachAndBegin(Shuffled(kUsed, 5));
  EXPECT_FALSE(uses_.steady()) << "several streams";
  for (int i = 0; i < 20; ++i) {
    for (int k = 0; k < 20; ++k)
      uses_.NoteRead(world_.desk.readers().Find(fast, 0));
    uses_.NoteRead(world_.desk.readers().Find(slow, 0));
    world_.Advance(std::chrono::milliseconds(10));
  }
  world_.Begin(slow, 0, 1, kUsed);
  world_.Begin(fast, 0, 1, kUsed);
  uses_.Refresh();
  // The slow one's second read comes when the fast one has read all.
  world_.desk.readers().Find(world_.desk.readers().Find(slow, 0))->current()->MarkAsked(0);
  const std::vector<SampleId> first(world_.Ids(fast, 0));
  EXPECT_EQ(Sorted(), first);
}

TEST_F(NextUsesTest, IsStaleWhenAPassBeginsOrAReaderEnds) {
  EXPECT_FALSE(uses_.Stale());
  const StreamId stream = AttachAndBegin(Shuffled(kUsed, 3));
  EXPECT_FALSE(uses_.Stale());
  world_.Begin(stream, 0, 1, kUsed);
  EXPECT_TRUE(uses_.Stale());
  uses_.Refresh();
  world_.desk.readers().EndAll();
  EXPECT_TRUE(uses_.Stale());
}

TEST_F(NextUsesTest, AnOrderThatIsNotTrustedIsNotSteady) {
  const StreamId stream = AttachAndBegin(Shuffled(kUsed, 3));
  const ReaderId id = world_.desk.readers().Find(stream, 0);
  world_.desk.readers().OnDrift(id, *world_.desk.readers().Find(id)->current(), "a test");
  uses_.Refresh();
  EXPECT_FALSE(uses_.steady());
}

}  // namespace
}  // namespace optcache::sidecar
