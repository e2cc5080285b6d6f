// What trainers get of a store that is the limit, in virtual time, compared with a queue that holds
// nothing back.

#include "unit/sidecar/throttled_world.h"

namespace optcache::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// What one rank reads, in its order, for a trainer that computes nothing: so the store is the
// limit.
struct HungryLoader {
  std::shared_ptr<ReadPace> pace;  // null: its order is not known, and nothing is staged
  std::size_t asks = 32;           // samples that its workers ask for in advance
  std::size_t stages = 96;         // beyond these

  struct Wanted {
    StoreQueue::Ticket ticket = 0;
    MonotonicTime asked_at{};
    bool here = false;
  };
  std::deque<Wanted> reads;  // from `consumed` on
  ReadPace::Place consumed = 0;
  std::size_t asked = 0;  // of `reads`
  ByteCount bytes = 0;
  Duration longest_wait{};
};

class HungryWorld {
 public:
  HungryWorld(std::vector<ByteCount> sizes, const ThrottledStore::Speed& speed, bool holds_back)
      : dataset_("images", std::move(sizes)), store_(clock_, speed) {
    clock_.Advance(seconds(1));
    store_.set_tells_arrived(holds_back);
  }
  ~HungryWorld() { store_.GiveUp(); }

  HungryLoader& AddLoader(HungryLoader loader) { return loaders_.emplace_back(std::move(loader)); }
  ThrottledStore& store() { return store_; }
  void Run(Duration time) {
    for (Duration passed{}; passed < time; passed += kTick) {
      clock_.Advance(kTick);
      store_.Deliver(kTick);
      alarms_.RunDue();
      for (HungryLoader& loader : loaders_)
        Train(loader);
    }
  }

 private:
  static constexpr Duration kTick = milliseconds(4);

  void Train(HungryLoader& loader) {
    while (loader.asked > 0 && loader.reads.front().here) {
      loader.reads.pop_front();
      ++loader.consumed;
      --loader.asked;
    }
    while (loader.reads.size() < loader.asks + (loader.pace != nullptr ? loader.stages : 0))
      Read(loader);
    for (; loader.asked < std::min(loader.asks, loader.reads.size()); ++loader.asked) {
      HungryLoader::Wanted& wanted = loader.reads[loader.asked];
      wanted.asked_at = clock_.Now();
      if (loader.pace == nullptr) continue;
      loader.pace->OnAsked(loader.consumed + loader.asked + 1, clock_.Now());
      if (!wanted.here) queue_.MakeUrgent(wanted.ticket);
    }
  }
  void Read(HungryLoader& loader) {
    const ReadPace::Place place = loader.consumed + loader.reads.size();
    const auto id = static_cast<SampleId>(place % dataset_.samples());
    loader.reads.emplace_back();
    loader.reads.back().ticket = queue_.Add(
        {.dataset = &dataset_,
         .id = id,
         .into = memory_.AllocateInArena(dataset_.SizeOf(id)),
         .done = [this, &loader, place](const Result<std::uint32_t>&) { OnRead(loader, place); },
         .due = {.pace = loader.pace, .place = place}},
        loader.pace == nullptr);
  }
  void OnRead(HungryLoader& loader, ReadPace::Place place) {
    const std::size_t at = place - loader.consumed;
    HungryLoader::Wanted& wanted = loader.reads[at];
    wanted.here = true;
    loader.bytes += dataset_.SizeOf(static_cast<SampleId>(place % dataset_.samples()));
    if (at < loader.asked)
      loader.longest_wait = std::max(loader.longest_wait, clock_.Now() - wanted.asked_at);
  }

  ManualClock clock_;
  FakeDataset dataset_;
  CountedArena arena_{1_GiB, 4_MiB};
  SampleMemory memory_{arena_, 0, {}};
  Alarms alarms_{clock_};
  ThrottledStore store_;
  std::deque<HungryLoader> loaders_;
  StoreQueue queue_{store_, alarms_, 32};
};

// Most have some kilobytes, one in fifty has hundreds.
std::vector<ByteCount> SomeSizes() {
  Random random(7);
  std::vector<ByteCount> sizes(2000);
  for (ByteCount& size : sizes)
    size = random.Below(50) == 0 ? 100'000 + random.Below(400'000) : 2'000 + random.Below(10'000);
  return sizes;
}

// Latencies vary. Where all are the same, reads that began together end together and others begin
// together, and a queue that holds too much back brings as much as one that does not.
constexpr ThrottledStore::Speed Shared(double bytes_per_second, Duration latency) {
  return {.bandwidth = bytes_per_second, .latency = latency, .varies = true};
}
constexpr ThrottledStore::Speed EachReadTakes(Duration latency) {
  return {.bandwidth = 1e12, .latency = latency, .varies = true};
}

struct Change {
  ThrottledStore::Speed before;
  Duration for_time{};
  ThrottledStore::Speed then;
  Duration settles = seconds(25);
  Duration counts = seconds(60);
};

// Of what a queue brings that holds nothing back.
double ShareOf(const Change& change) {
  std::array<double, 2> bytes{};
  for (const bool holds_back : {false, true}) {
    HungryWorld world(SomeSizes(), change.before, holds_back);
    HungryLoader& loader = world.AddLoader({.pace = std::make_shared<ReadPace>()});
    world.Run(change.for_time);
    world.store().set_speed(change.then);
    world.Run(change.settles);
    const ByteCount before = loader.bytes;
    world.Run(change.counts);
    bytes[holds_back ? 1 : 0] = static_cast<double>(loader.bytes - before);
  }
  return bytes[1] / bytes[0];
}

TEST(ThrottledQueue, BringsAllThatAStoreOfManySlowReadsHas) {
  for (const int ms : {20, 52, 60, 100}) {
    SCOPED_TRACE(ms);
    EXPECT_GE(ShareOf({.then = EachReadTakes(milliseconds(ms)), .settles = seconds(10)}), 0.97);
  }
}

TEST(ThrottledQueue, BringsAllThatASharedBandwidthHas) {
  for (const int ms : {1, 50, 100}) {
    SCOPED_TRACE(ms);
    EXPECT_GE(ShareOf({.then = Shared(1e6, milliseconds(ms))}), 0.97);
  }
}

// Few reads end in a second, and some are fifty times as large as others. So it takes minutes to
// compare the queues.
TEST(ThrottledQueue, BringsNearlyAllThatAStoreHasWhichAnswersLate) {
  for (const auto& [ms, share] : {std::pair(600, 0.96), std::pair(1500, 0.88)}) {
    for (ThrottledStore::Speed speed :
         {EachReadTakes(milliseconds(ms)), Shared(1e6, milliseconds(ms))}) {
      for (const bool varies : {false, true}) {
        SCOPED_TRACE(testing::Message() << ms << " ms, " << speed.bandwidth << ' ' << varies);
        speed.varies = varies;
        EXPECT_GE(ShareOf({.then = speed, .settles = seconds(10), .counts = seconds(300)}), share);
      }
    }
  }
}

TEST(ThrottledQueue, NoticesThatAStoreGetsFaster) {
  EXPECT_GE(ShareOf({.before = Shared(1e6, milliseconds(1)),
                     .for_time = seconds(60),
                     .then = Shared(2e7, milliseconds(50))}),
            0.97);
}

TEST(ThrottledQueue, NoticesThatABandwidthIsTheLimitNoMore) {
  EXPECT_GE(ShareOf({.before = Shared(1e6, milliseconds(1)),
                     .for_time = seconds(60),
                     .then = EachReadTakes(milliseconds(100))}),
            0.97);
}

TEST(ThrottledQueue, ASlowFirstSecondIsForgotten) {
  EXPECT_GE(ShareOf({.before = Shared(1.6e5, milliseconds(1)),
                     .for_time = seconds(1),
                     .then = EachReadTakes(milliseconds(100))}),
            0.97);
}

// One loader's order is known, the other's is not; the first alone could take all of the store.
TEST(ThrottledQueue, NoLoaderWaitsMuchLongerThanIfNothingWereHeldBack) {
  std::array<std::array<double, 2>, 2> longest{};
  for (const bool holds_back : {false, true}) {
    HungryWorld world(SomeSizes(), Shared(1e6, milliseconds(10)), holds_back);
    const HungryLoader& first = world.AddLoader({.pace = std::make_shared<ReadPace>()});
    const HungryLoader& second = world.AddLoader({.pace = nullptr, .asks = 4});
    world.Run(seconds(120));
    longest[holds_back ? 1 : 0] = {ToSeconds(first.longest_wait), ToSeconds(second.longest_wait)};
  }
  EXPECT_LE(longest[1][0], longest[0][0] + 1.5);
  EXPECT_LE(longest[1][1], longest[0][1] + 1.5);
}

}  // namespace
}  // namespace optcache::sidecar
