#pragma once

// A ComputedCache and its clients, held still: time is moved by hand, orders are replayed when they
// are asked for.

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sidecar/computed/computed_cache.h"
#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {

struct ComputedAnswer {
  ClientId client = 0;
  std::uint64_t request = 0;
  std::optional<Slot> value;
  ComputedLease lease = 0;
  ByteCount room = 0;
  Status status;
};

class FakeComputedClients final : public ComputedPort {
 public:
  void Value(ClientId client, std::uint64_t request, Slot slot) override {
    answers.push_back({.client = client, .request = request, .value = slot});
  }
  void Compute(ClientId client, std::uint64_t request, ComputedLease lease,
               ByteCount room) override {
    answers.push_back({.client = client, .request = request, .lease = lease, .room = room});
  }
  void RefuseComputed(ClientId client, std::uint64_t request, const Status& why) override {
    answers.push_back({.client = client, .request = request, .status = why});
  }
  std::deque<ComputedAnswer> answers;
};

class ComputedWorld {
 public:
  explicit ComputedWorld(ByteCount capacity)
      : arena(capacity), desk(arena, orders, alarms, {}, clients) {}

  // Lets happen all that is due.
  void Settle() {
    do {
      alarms.RunDue();
      orders.AnswerAll();
      alarms.RunDue();
    } while (!orders.pending.empty());
  }
  void Advance(Duration by) {
    clock.Advance(by);
    Settle();
  }

  ComputedHandle Open(ClientId client, std::uint64_t samples, const std::string& name = "train") {
    return desk.Open(client, name, "faces", samples, arena.capacity()).value().dataset;
  }
  // Returns the stream.
  StreamId Attach(ClientId client, ComputedHandle handle, AttachRequest request) {
    request.dataset = desk.Dataset(client, handle).value();
    const ReaderId id = desk.readers().Attach(client, request).value();
    return desk.readers().Find(id)->attachment().stream;
  }
  void Begin(StreamId stream, Rank rank, PassNumber pass, std::uint64_t length) {
    const ReaderId id = desk.readers().Find(stream, rank);
    const PassSpan span{.pass = pass, .epoch = pass, .begin = 0, .end = length};
    EXPECT_TRUE(desk.readers().Begin(id, span, std::nullopt).ok());
    Settle();
  }
  // The order that a rank's pass has.
  std::vector<SampleId> Ids(StreamId stream, Rank rank) {
    return desk.readers().Find(desk.readers().Find(stream, rank))->current()->order()->ids;
  }

  // The answer, if there is one now.
  std::optional<ComputedAnswer> Ask(ClientId client, const ComputedRequest& request) {
    desk.Ask(client, request);
    return Answer(client);
  }
  std::optional<ComputedAnswer> Answer(ClientId client) {
    const auto found = std::ranges::find(clients.answers, client,
                                         [](const auto& answer) { return answer.client; });
    if (found == clients.answers.end()) return std::nullopt;
    ComputedAnswer answer = *found;
    clients.answers.erase(found);
    return answer;
  }
  void Put(ClientId client, ComputedLease lease, SampleId id, ByteCount length) {
    std::vector<std::byte> bytes(length);
    FillSample(id, bytes);
    desk.Put(client, lease, length, 0, bytes);
  }
  bool Holds(Slot slot, SampleId id) { return IsSample(id, arena.Bytes(slot)); }

  // Reads a sample as a worker does, which computes it if need be; whether it was there.
  bool Read(ClientId client, const ComputedRequest& request, ByteCount length) {
    const auto answer = Ask(client, request);
    EXPECT_TRUE(answer && answer->status.ok());
    if (answer->value) {
      EXPECT_TRUE(Holds(*answer->value, request.id));
      return true;
    }
    Put(client, answer->lease, request.id, length <= answer->room ? length : 0);
    return false;
  }

  ManualClock clock;
  Alarms alarms{clock};
  FakeArena arena;
  FakeOrders orders;
  FakeComputedClients clients;
  ComputedCache desk;
};

inline AttachRequest Shuffled(std::uint64_t size, std::int64_t seed, std::uint32_t world = 1,
                              Rank rank = 0) {
  AttachRequest request;
  request.loader = "train-" + std::to_string(seed);
  request.recipe = {.kind = sampler::Kind::kTorchDistributed,
                    .size = size,
                    .seed = seed,
                    .world = world,
                    .shuffle = true};
  request.rank = rank;
  return request;
}

}  // namespace optcache::sidecar
