#pragma once

// A training job behind a slow store, in virtual time: two ranks that compute for a fixed time a
// batch, a node that keeps what fits as a slot plan does, and a store whose reads share one
// bandwidth, as behind a token bucket.

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {

// Reads under way get equal parts of the bandwidth, from `latency` after they began, or from up to
// twice that if it varies; one alone gets at most `connection`. Nothing is written.
class ThrottledStore final : public StorePort {
 public:
  struct Speed {
    double bandwidth = 0;  // bytes a second, of all together
    double connection = std::numeric_limits<double>::infinity();
    Duration latency = std::chrono::milliseconds(1);
    bool varies = false;
  };
  ThrottledStore(const Clock& clock, const Speed& speed) : clock_(clock), speed_(speed) {}

  void Read(const DatasetPort&, Part part, OnWait) override {
    const auto bytes = static_cast<double>(part.into->bytes().size());
    bytes_read_ += part.into->bytes().size();
    const double times = 1 + (speed_.varies ? random_.Unit() : 0);
    reads_.push_back(
        {.left = bytes,
         .from = clock_.Now() + std::chrono::duration_cast<Duration>(times * speed_.latency),
         .into = std::move(part.into),
         .done = std::move(part.done)});
  }
  void ReadTogether(const DatasetPort& dataset, std::vector<Part> parts, OnWait wait) override {
    for (Part& part : parts)
      Read(dataset, std::move(part), wait);
  }
  ByteCount Arrived(const DatasetPort&) const override {
    return tells_arrived_ ? static_cast<ByteCount>(arrived_) : 0;
  }

  // What comes in `time` that has passed.
  void Deliver(Duration time) {
    const double passed = ToSeconds(time);
    double rest = speed_.bandwidth * passed;
    // The smallest rest first: what it leaves is for the others.
    std::vector<Pending*> coming;
    for (Pending& read : reads_) {
      if (read.from <= clock_.Now()) coming.push_back(&read);
    }
    std::sort(coming.begin(), coming.end(),
              [](const Pending* a, const Pending* b) { return a->left < b->left; });
    for (std::size_t i = 0; i < coming.size(); ++i) {
      const double part = std::min({rest / static_cast<double>(coming.size() - i),
                                    speed_.connection * passed, coming[i]->left});
      coming[i]->left -= part;
      arrived_ += part;
      rest -= part;
    }
    std::vector<Pending> ended;
    for (auto it = reads_.begin(); it != reads_.end();) {
      const bool whole = it->from <= clock_.Now() && it->left < 0.5;
      if (whole) ended.push_back(std::move(*it));
      it = whole ? reads_.erase(it) : std::next(it);
    }
    for (Pending& read : ended) {
      const Done done = std::move(read.done);
      read.into.reset();
      done(std::uint32_t{0});
    }
  }
  void GiveUp() { reads_.clear(); }

  ByteCount bytes_read() const { return bytes_read_; }
  void set_speed(const Speed& speed) { speed_ = speed; }
  // False: so that nothing is held back.
  void set_tells_arrived(bool tells) { tells_arrived_ = tells; }

 private:
  struct Pending {
    double left = 0;
    MonotonicTime from{};
    BufferRef into;
    Done done;
  };
  const Clock& clock_;
  Speed speed_;
  Random random_{1};
  std::vector<Pending> reads_;
  ByteCount bytes_read_ = 0;
  double arrived_ = 0;
  bool tells_arrived_ = true;
};

// Knows how much is taken, not where: all slots are one piece of memory.
class CountedArena final : public ArenaPort {
 public:
  CountedArena(ByteCount capacity, ByteCount largest) : capacity_(capacity), bytes_(largest) {}
  ByteCount capacity() const override { return capacity_; }
  std::optional<Slot> Allocate(ByteCount length) override {
    if (length > capacity_ - taken_) return std::nullopt;
    taken_ += length;
    return Slot{.offset = 0, .length = length};
  }
  void Free(Slot slot) override { taken_ -= slot.length; }
  MutableByteSpan Bytes(Slot slot) override { return MutableByteSpan(bytes_).first(slot.length); }

 private:
  ByteCount capacity_;
  ByteCount taken_ = 0;
  std::vector<std::byte> bytes_;
};

// Which reads of a pass find their sample on the node: what a slot plan of one node keeps.
class SlotNode {
 public:
  SlotNode(const std::vector<ByteCount>& sizes, double share)
      : sizes_(sizes),
        held_(sizes.size()),
        room_(static_cast<double>(std::accumulate(sizes.begin(), sizes.end(), ByteCount{0})) *
              share) {}

  // `order` by position; true: a hit. By sample.
  std::vector<bool> Plan(const std::vector<SampleId>& order) {
    std::vector<bool> hits = held_;
    for (const SampleId id : order) {
      const auto size = static_cast<double>(sizes_[id]);
      if (held_[id]) room_ += size;
      held_[id] = size <= room_;
      if (held_[id]) room_ -= size;
    }
    return hits;
  }

 private:
  std::vector<ByteCount> sizes_;
  std::vector<bool> held_;
  double room_;
};

// Sizes as those of the demo's images, a quarter of each: half are below 425 bytes, one in fifty
// has tens of kilobytes, and a few have up to 1.6 MB.
inline std::vector<ByteCount> ImageSizes(std::size_t samples, Random& random) {
  constexpr double kMedian = 425;
  constexpr double kSigma = 1.2;  // of the logarithm
  std::vector<ByteCount> sizes(samples);
  for (ByteCount& size : sizes) {
    const double normal =
        std::sqrt(-2 * std::log(1 - random.Unit())) * std::cos(2 * M_PI * random.Unit());
    size = static_cast<ByteCount>(kMedian * std::exp(kSigma * normal)) + 1;
    if (random.Below(50) == 0) size = 12'000 + random.Below(80'000);
    if (random.Below(2000) == 0) size = 250'000 + random.Below(1'350'000);
  }
  return sizes;
}

class ThrottledWorld {
 public:
  static constexpr std::size_t kRanks = 2;
  static constexpr std::size_t kBatch = 32;
  static constexpr std::size_t kAhead = 4;  // batches that a rank's workers ask for in advance
  static constexpr Duration kTick = std::chrono::milliseconds(1);

  struct Scene {
    std::vector<ByteCount> sizes;
    ByteCount arena = 0;
    double share = 0.3;  // of the bytes that the node holds
    Duration epoch{};    // that an epoch takes where data is free
    ThrottledStore::Speed speed;
  };
  struct Epoch {
    double seconds = 0;
    double longest_wait = 0;  // of one rank for one batch
    ByteCount store_bytes = 0;
  };

  explicit ThrottledWorld(const Scene& scene)
      : dataset_("images", scene.sizes),
        arena_(scene.arena, std::ranges::max(scene.sizes) + 1),
        alarms_(clock_),
        store_(clock_, scene.speed),
        kept_(scene.sizes, scene.share) {
    feeder_.emplace(FeederPorts{.arena = arena_,
                                .node = node_,
                                .store = store_,
                                .orders = orders_,
                                .clients = clients_},
                    alarms_, FeederOptions{});
    node_.on_get = [this](std::uint32_t request, const wire::Get& get) {
      answers_.emplace_back(request, get);
    };
    clients_.on_reply = [this](const FakeClients::Answer& answer) { OnReply(answer); };
    const std::size_t batches = (scene.sizes.size() / kRanks + kBatch - 1) / kBatch;
    step_ = scene.epoch / batches;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      auto reader = feeder_->readers().Attach(rank + 1, {.dataset = &dataset_,
                                                         .loader = "train",
                                                         .recipe = Recipe(),
                                                         .rank = static_cast<Rank>(rank)});
      EXPECT_TRUE(reader.has_value());
      ranks_[rank].reader = reader.value_or(0);
    }
  }
  ~ThrottledWorld() {
    answers_.clear();
    store_.GiveUp();
    node_.puts.clear();
    feeder_.reset();
  }

  // Ranks begin an epoch together, as with gradients that are exchanged.
  Epoch Run(PassNumber pass) {
    BeginPass(pass);
    const MonotonicTime begin = clock_.Now();
    const ByteCount before = store_.bytes_read();
    longest_wait_ = Duration::zero();
    const auto done = [this](const RankState& rank) {
      return rank.consumed == rank.batches && clock_.Now() >= rank.free_at;
    };
    while (!std::ranges::all_of(ranks_, done))
      Tick();
    return {.seconds = ToSeconds(clock_.Now() - begin),
            .longest_wait = ToSeconds(longest_wait_),
            .store_bytes = store_.bytes_read() - before};
  }

  ThrottledStore& store() { return store_; }
  void VisitCounters(const CounterVisitor& visitor) const { feeder_->VisitCounters(visitor); }

 private:
  struct RankState {
    ReaderId reader = 0;
    std::vector<SampleId> order;
    std::size_t batches = 0;
    std::size_t asked = 0;
    std::size_t consumed = 0;
    MonotonicTime free_at{};               // the GPU is done with the batch before
    std::map<std::size_t, BatchId> ready;  // by number of the batch
  };

  sampler::Recipe Recipe() const {
    return {.size = dataset_.samples(), .seed = 5, .world = kRanks};
  }

  void BeginPass(PassNumber pass) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      RankState& state = ranks_[rank];
      state.order = Order(pass, rank);
      state.batches = (state.order.size() + kBatch - 1) / kBatch;
      state.asked = state.consumed = 0;
      state.free_at = clock_.Now();
      EXPECT_TRUE(feeder_->readers()
                      .Begin(state.reader,
                             {.pass = pass, .epoch = pass, .begin = 0, .end = state.order.size()},
                             sampler::OrderCrc(state.order))
                      .ok());
    }
  }
  std::vector<SampleId> Order(PassNumber pass, std::size_t rank) const {
    return FakeOrders::Ids({.recipe = Recipe(), .epoch = pass, .rank = static_cast<Rank>(rank)});
  }

  // Plans are made pass by pass, as staging comes to them.
  bool Hits(const wire::ReadItem& item) {
    while (hits_.size() <= item.pass) {
      const std::vector<SampleId> first = Order(static_cast<PassNumber>(hits_.size()), 0);
      const std::vector<SampleId> second = Order(static_cast<PassNumber>(hits_.size()), 1);
      std::vector<SampleId> whole;
      for (std::size_t i = 0; i < first.size(); ++i)
        whole.insert(whole.end(), {first[i], second[i]});
      hits_.push_back(kept_.Plan(whole));
    }
    return hits_[item.pass][item.id];
  }

  void Tick() {
    clock_.Advance(kTick);
    store_.Deliver(kTick);
    AnswerGets();
    for (std::size_t rank = 0; rank < kRanks; ++rank)
      Train(rank);
    alarms_.RunDue();
    orders_.AnswerAll();
    alarms_.RunDue();
    node_.sent.clear();
  }

  void AnswerGets() {
    const auto asked = std::exchange(answers_, {});
    for (const auto& [request, get] : asked) {
      for (std::uint32_t i = 0; i < get.items.size(); ++i) {
        wire::SampleReply reply{.index = i, .answer = wire::Answer::kMissDrop};
        if (!Hits(get.items[i])) {
          feeder_->OnAnswer(request, reply);
          continue;
        }
        reply.answer = wire::Answer::kHere;
        feeder_->OnPayloadStart(request, reply, dataset_.SizeOf(get.items[i].id));
        feeder_->OnPayload(request, reply, OkStatus());
      }
    }
  }

  void Train(std::size_t rank) {
    RankState& state = ranks_[rank];
    const MonotonicTime now = clock_.Now();
    while (state.asked < state.batches && state.asked < state.consumed + kAhead)
      Ask(rank);
    if (state.consumed == state.batches || now < state.free_at) return;
    const auto ready = state.ready.find(state.consumed);
    if (ready == state.ready.end()) return;
    longest_wait_ = std::max(longest_wait_, now - state.free_at);
    feeder_->batches().Release(rank + 1, ready->second);
    state.ready.erase(ready);
    ++state.consumed;
    state.free_at = now + step_;
  }

  void Ask(std::size_t rank) {
    RankState& state = ranks_[rank];
    const std::size_t first = state.asked * kBatch;
    const std::size_t end = std::min(first + kBatch, state.order.size());
    asked_.emplace(++last_request_, std::pair(rank, state.asked));
    ++state.asked;
    feeder_->batches().Ask(rank + 1,
                           {.request = last_request_,
                            .dataset = &dataset_,
                            .ids = {state.order.begin() + static_cast<std::ptrdiff_t>(first),
                                    state.order.begin() + static_cast<std::ptrdiff_t>(end)},
                            .reader = state.reader,
                            .pass = feeder_->readers().Find(state.reader)->current()->span().pass,
                            .first = first});
  }

  void OnReply(const FakeClients::Answer& answer) {
    const auto asked = asked_.extract(answer.request);
    const auto [rank, batch] = asked.mapped();
    ranks_[rank].ready.emplace(batch, answer.batch);
    clients_.answers.clear();
  }

  ManualClock clock_;
  FakeDataset dataset_;
  CountedArena arena_;
  Alarms alarms_;
  FakeNode node_;
  ThrottledStore store_;
  SlotNode kept_;
  std::vector<std::vector<bool>> hits_;  // by pass, by sample
  FakeOrders orders_;
  FakeClients clients_;
  std::optional<Feeder> feeder_;
  Duration step_{};
  std::array<RankState, kRanks> ranks_;
  std::deque<std::pair<std::uint32_t, wire::Get>> answers_;
  std::map<std::uint64_t, std::pair<std::size_t, std::size_t>> asked_;  // rank, batch
  std::uint64_t last_request_ = 0;
  Duration longest_wait_{};
};

}  // namespace optcache::sidecar
