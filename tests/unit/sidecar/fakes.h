#pragma once

// The world around the sidecar's core, held still: every call back waits in a queue until the test
// lets it happen, and time is moved by hand.

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/random.h"
#include "sampler/order_source.h"
#include "sidecar/clients/feeder.h"
#include "support/manual_clock.h"

namespace optcache::sidecar {

// Byte `at` of a sample, so that every sample and every place in it is told apart.
inline std::byte SampleByte(SampleId id, std::size_t at) {
  return static_cast<std::byte>(Random::Mix((std::uint64_t{id} << 32U) + at) & 0xffU);
}
inline void FillSample(SampleId id, MutableByteSpan bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = SampleByte(id, i);
}
inline bool IsSample(SampleId id, ByteSpan bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != SampleByte(id, i)) return false;
  }
  return true;
}

class FakeDataset final : public DatasetPort {
 public:
  FakeDataset(std::string name, std::vector<ByteCount> sizes)
      : name_(std::move(name)), sizes_(std::move(sizes)) {}
  const std::string& name() const override { return name_; }
  wire::DatasetKey key() const override { return 77; }
  SampleId samples() const override { return static_cast<SampleId>(sizes_.size()); }
  ByteCount SizeOf(SampleId id) const override { return sizes_.at(id); }
  std::optional<StorePlace> PlaceOf(SampleId id) const override {
    const auto found = places.find(id);
    return found == places.end() ? std::nullopt : std::optional(found->second);
  }
  dataset::StorePrice price() const override { return store_price; }
  std::map<SampleId, StorePlace> places;  // of samples in archives
  dataset::StorePrice store_price;

 private:
  std::string name_;
  std::vector<ByteCount> sizes_;
};

// First fit, and a check that no two slots overlap.
class FakeArena final : public ArenaPort {
 public:
  explicit FakeArena(ByteCount capacity) : bytes_(capacity) {}
  ByteCount capacity() const override { return bytes_.size(); }
  std::optional<Slot> Allocate(ByteCount length) override {
    ByteCount at = 0;
    for (const auto& [offset, taken] : slots_) {
      if (offset - at >= length) break;
      at = offset + taken;
    }
    if (at + length > bytes_.size()) return std::nullopt;
    CHECK(slots_.emplace(at, length).second);
    return Slot{.offset = at, .length = length};
  }
  void Free(Slot slot) override {
    const auto found = slots_.find(slot.offset);
    CHECK(found != slots_.end() && found->second == slot.length);
    slots_.erase(found);
  }
  MutableByteSpan Bytes(Slot slot) override {
    return MutableByteSpan(bytes_).subspan(slot.offset, slot.length);
  }
  std::size_t slots() const { return slots_.size(); }

 private:
  std::vector<std::byte> bytes_;
  std::map<ByteCount, ByteCount> slots_;
};

class FakeNode final : public NodePort {
 public:
  struct Sent {
    std::uint32_t request = 0;
    wire::Message message;
  };
  struct PutSent {
    wire::Put put;
    BufferRef payload;
  };

  bool connected() const override { return up; }
  void Send(std::uint32_t request, const wire::Message& message) override {
    if (!up) return;
    sent.push_back({request, message});
    if (const auto* get = std::get_if<wire::Get>(&message); get != nullptr && on_get) {
      on_get(request, *get);
    }
  }
  void Put(const wire::Put& put, BufferRef payload) override {
    puts.push_back({put, std::move(payload)});
    if (on_put) on_put();
  }
  void Drop(Status why) override {
    dropped.push_back(std::move(why));
    if (on_drop) on_drop();
  }

  template <typename T>
  std::vector<T> All() const {
    std::vector<T> found;
    for (const Sent& one : sent) {
      if (const T* message = std::get_if<T>(&one.message)) found.push_back(*message);
    }
    return found;
  }

  NodeTraffic traffic() const override { return passed; }

  bool up = true;
  NodeTraffic passed;
  std::vector<Sent> sent;
  std::vector<PutSent> puts;
  std::vector<Status> dropped;
  std::function<void(std::uint32_t, const wire::Get&)> on_get;
  std::function<void()> on_put;
  std::function<void()> on_drop;
};

class FakeStore final : public StorePort {
 public:
  struct Pending {
    SampleId id = 0;
    BufferRef into;
    OnWait on_wait;
    Done done;
    bool keep = false;
  };
  void Read(const DatasetPort&, Part part, OnWait on_wait) override {
    pending.push_back(
        {part.id, std::move(part.into), std::move(on_wait), std::move(part.done), part.keep});
    ++reads[part.id];
    if (on_read) on_read();
  }
  // Each sample is told of its end by itself, as from several threads.
  void ReadTogether(const DatasetPort& dataset, std::vector<Part> parts, OnWait on_wait) override {
    runs.emplace_back();
    for (Part& part : parts) {
      runs.back().push_back(part.id);
      Read(dataset, std::move(part), on_wait);
    }
  }
  // Ends the read at that place of `pending`.
  void End(std::size_t at = 0, const Status& status = {}) {
    Pending read = std::move(pending.at(at));
    pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(at));
    if (status.ok()) {
      FillSample(read.id, read.into->bytes());
      read.done(Crc32c(read.into->bytes()));
    } else {
      read.done(Error(status));
    }
  }
  void EndAll() {
    while (!pending.empty())
      End();
  }
  std::deque<Pending> pending;
  std::map<SampleId, int> reads;
  std::vector<std::vector<SampleId>> runs;  // ids of those that were read together
  std::function<void()> on_read;
  std::vector<std::string> waits;
  std::vector<std::string> Waits() const override { return waits; }
  ByteCount Arrived(const DatasetPort&) const override { return arrived; }
  ByteCount arrived = 0;
  std::uint64_t Requests(const DatasetPort&) const override { return requests; }
  std::uint64_t requests = 0;
};

// Replays at once, answers when the test says so.
class FakeOrders final : public OrderPort {
 public:
  void Replay(const RankPassRequest& request, Done done) override {
    pending.emplace_back(request, std::move(done));
  }
  static std::vector<SampleId> Ids(const RankPassRequest& request) {
    if (request.trace != nullptr) return *request.trace;
    auto source = sampler::OrderSource::Make(request.recipe);
    return source->RankOrder(request.epoch, request.rank).value();
  }
  static std::shared_ptr<const RankPass> Make(const RankPassRequest& request) {
    auto pass = std::make_shared<RankPass>();
    pass->ids = Ids(request);
    pass->by_id.resize(pass->ids.size());
    for (std::uint32_t i = 0; i < pass->by_id.size(); ++i)
      pass->by_id[i] = i;
    std::sort(pass->by_id.begin(), pass->by_id.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(pass->ids[a], a) < std::pair(pass->ids[b], b);
    });
    pass->crc =
        sampler::OrderCrc(std::span(pass->ids).subspan(request.begin, request.end - request.begin));
    return pass;
  }
  void AnswerOne() {
    auto [request, done] = std::move(pending.front());
    pending.pop_front();
    done(Make(request));
  }
  void AnswerAll() {
    while (!pending.empty())
      AnswerOne();
  }
  std::deque<std::pair<RankPassRequest, Done>> pending;
};

class FakeClients final : public ClientPort {
 public:
  struct Answer {
    ClientId client = 0;
    std::uint64_t request = 0;
    BatchId batch = 0;
    std::vector<Status> status;
    std::vector<std::optional<Slot>> slots;
    std::vector<std::vector<std::byte>> bytes;
  };
  void Reply(ClientId client, std::uint64_t request, BatchId batch,
             const std::vector<Served>& samples) override {
    Answer answer{.client = client, .request = request, .batch = batch};
    for (const Served& sample : samples) {
      answer.status.push_back(sample.status);
      answer.slots.push_back(sample.buffer ? sample.buffer->slot() : std::nullopt);
      const ByteSpan bytes = sample.buffer ? ByteSpan(sample.buffer->bytes()) : ByteSpan();
      answer.bytes.emplace_back(bytes.begin(), bytes.end());
    }
    answers.push_back(answer);
    if (on_reply) on_reply(answers.back());
  }
  void Refuse(ClientId, std::uint64_t request, const Status& why) override {
    refused.emplace_back(request, why);
  }
  std::vector<Answer> answers;
  std::vector<std::pair<std::uint64_t, Status>> refused;
  std::function<void(const Answer&)> on_reply;
};

// All of it together. Tests that need one part alone take the fakes they need.
struct World {
  World(ByteCount arena_bytes, std::vector<ByteCount> sizes, FeederOptions options = {})
      : dataset("images", std::move(sizes)), arena(arena_bytes), alarms(clock) {
    feeder.emplace(
        FeederPorts{
            .arena = arena, .node = node, .store = store, .orders = orders, .clients = clients},
        alarms, options);
  }
  ~World() {
    store.pending.clear();
    node.puts.clear();
    feeder.reset();
    EXPECT_EQ(arena.slots(), 0U);
  }

  void Run() {
    alarms.RunDue();
    orders.AnswerAll();
    alarms.RunDue();
  }
  void Advance(Duration by) {
    clock.Advance(by);
    Run();
  }
  // Lets all store reads end, also those that begin meanwhile.
  void RunStore() {
    Run();
    while (!store.pending.empty()) {
      store.EndAll();
      Run();
    }
  }

  sampler::Recipe Recipe(std::uint32_t world = 1) const {
    return {.size = dataset.samples(), .seed = 3, .world = world};
  }
  ReaderId Attach(ClientId client, std::uint32_t world = 1, Rank rank = 0,
                  const std::string& loader = "train") {
    auto reader = feeder->readers().Attach(
        client, {.dataset = &dataset, .loader = loader, .recipe = Recipe(world), .rank = rank});
    EXPECT_TRUE(reader.has_value());
    return reader.value_or(0);
  }
  std::vector<SampleId> Order(std::uint64_t epoch, std::uint32_t world = 1, Rank rank = 0) const {
    return FakeOrders::Ids({.recipe = Recipe(world), .epoch = epoch, .rank = rank});
  }
  // Announces a whole pass whose number is its epoch.
  void Begin(ReaderId reader, PassNumber pass, std::uint32_t world = 1, Rank rank = 0) {
    const auto order = Order(pass, world, rank);
    EXPECT_TRUE(feeder->readers()
                    .Begin(reader, {.pass = pass, .epoch = pass, .begin = 0, .end = order.size()},
                           sampler::OrderCrc(order))
                    .ok());
  }
  void Ask(ClientId client, std::uint64_t request, std::vector<SampleId> ids, ReaderId reader = 0,
           PassNumber pass = 0, std::optional<std::uint64_t> first = std::nullopt) {
    feeder->batches().Ask(client, {.request = request,
                                   .dataset = &dataset,
                                   .ids = std::move(ids),
                                   .reader = reader,
                                   .pass = pass,
                                   .first = first});
  }
  void Lose() {
    node.up = false;
    feeder->OnNodeLost();
  }

  ManualClock clock;
  FakeDataset dataset;
  FakeArena arena;
  Alarms alarms;
  FakeNode node;
  FakeStore store;
  FakeOrders orders;
  FakeClients clients;
  std::optional<Feeder> feeder;
};

}  // namespace optcache::sidecar
