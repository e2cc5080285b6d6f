// Sends a second request for a read that is late, and takes the first good answer.
//
//   Read ─► first request ─────────────────────► OnFirst ───┐
//      └─► not_late_ ─► late_ ─► StartSecond ─► OnSecond ───┴─► done, once
//
// The idea: the first request writes to the reader's memory, the second to memory of its own. If
// the second wins, WriteStop ends the first one's writes before the bytes are copied. The alarm
// thread moves races from not_late_ to late_ and gives them a second request when the policy and
// the room allow it.
//
// Invariants: `over` is set once, under the lock, by the request that ends the race; the end of the
// other changes figures alone. If a second request would meet the first one's fault too, the race
// ends with it; otherwise it is lost only when both have failed. Callbacks, and has_room_, run
// without the lock.

#include "storage/hedging_store.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace optcache::storage {
namespace {

// Reads that are late look for a hedge this often: one is earned by other reads, or room is made.
constexpr Duration kHedgeLook = std::chrono::milliseconds(5);
constexpr Duration kIdleHedgeLook = std::chrono::seconds(10);

ByteCount KeptBytes(const Destination& destination) {
  ByteCount kept = 0;
  for (const Destination::Part& part : destination.parts())
    kept += part.data == nullptr ? 0 : part.length;
  return kept;
}

// The same range into memory of its own.
Destination InOwnMemory(const Destination& destination, std::byte* memory) {
  Destination own;
  own.set_traffic(destination.traffic());
  for (const Destination::Part& part : destination.parts()) {
    if (part.data == nullptr) {
      own.Skip(part.length);
    } else {
      own.Add({memory, part.length});
      memory += part.length;
    }
  }
  return own;
}

void CopyTo(const Destination& destination, const std::byte* memory) {
  for (const Destination::Part& part : destination.parts()) {
    if (part.data == nullptr) continue;
    std::memcpy(part.data, memory, part.length);
    memory += part.length;
  }
}

}  // namespace

// One read with its one or two requests. All but what does not change after Read is guarded by the
// store's mutex.
struct HedgingStore::Race {
  Race(ReadRequest wanted, ReadCallback on_end)
      : request(std::move(wanted)), done(std::move(on_end)) {}

  ReadRequest request;
  ReadCallback done;  // moved from once over
  std::shared_ptr<WriteStop> first_writes = std::make_shared<WriteStop>();
  ByteCount kept_bytes = 0;
  MonotonicTime began{};
  std::optional<std::multimap<MonotonicTime, RacePtr>::iterator> alarm;
  bool over = false;
  bool second_runs = false;
  Duration second_after{};
  std::unique_ptr<std::byte[]> memory;   // of the second request
  std::optional<ReadOutcome> first_end;  // failed, while the second runs
  std::optional<Status> second_end;      // failed
};

HedgingStore::HedgingStore(std::unique_ptr<ObjectStore> inner, HedgeOptions options,
                           std::function<bool()> has_room, const Clock& clock)
    : inner_(std::move(inner)),
      has_room_(std::move(has_room)),
      clock_(clock),
      policy_(options),
      alarm_(clock, [this](MonotonicTime now) { return Look(now); }) {}

HedgingStore::~HedgingStore() {
  Shutdown();
}

Status HedgingStore::Read(ReadRequest request, ReadCallback done) {
  RETURN_IF_ERROR(CheckReadRequest(request));
  const auto race = std::make_shared<Race>(request, std::move(done));
  race->kept_bytes = KeptBytes(request.destination);
  request.destination.set_stop(race->first_writes);
  race->began = clock_.Now();
  std::optional<Duration> late_after;
  {
    const MutexLock lock(mutex_);
    if (stopping_) return {Code::kCancelled, name() + ": shut down"};
    late_after = policy_.OnRead(race->request.destination.size());
  }
  RETURN_IF_ERROR(inner_->Read(std::move(request), [this, race](ReadOutcome outcome) {
    OnFirst(race, std::move(outcome));
  }));
  if (!late_after) return OkStatus();
  const MonotonicTime late_at = race->began + *late_after;
  {
    const MutexLock lock(mutex_);
    if (race->over) return OkStatus();
    race->alarm = not_late_.emplace(late_at, race);
  }
  alarm_.WakeAt(late_at);
  return OkStatus();
}

void HedgingStore::Finish(const RacePtr& race) {
  race->over = true;
  if (race->alarm) not_late_.erase(*race->alarm);
  race->alarm.reset();
}

void HedgingStore::OnFirst(const RacePtr& race, ReadOutcome outcome) {
  const Duration latency = clock_.Now() - race->began - outcome.held_back;
  {
    const MutexLock lock(mutex_);
    if (race->over) return;  // the second came first
    if (outcome.status.ok()) policy_.OnLatency(race->request.destination.size(), latency);
    if (!outcome.status.ok() && MayGetBetter(outcome.status.code()) && race->second_runs) {
      race->first_end = std::move(outcome);
      return;
    }
    Finish(race);
    if (!outcome.status.ok() && race->second_end) {
      outcome.status = {outcome.status.code(),
                        fmt::format("{} (and once more, {} ms later: {})", outcome.status.message(),
                                    race->second_after / std::chrono::milliseconds(1),
                                    race->second_end->message())};
    }
  }
  race->done(std::move(outcome));
}

void HedgingStore::OnSecond(const RacePtr& race, ReadOutcome outcome) {
  const ByteCount bytes = race->request.destination.size();
  const Duration since = clock_.Now() - race->began;
  {
    const MutexLock lock(mutex_);
    policy_.OnHedgeEnd(race->kept_bytes);
    race->second_runs = false;
    const bool won = !race->over && outcome.status.ok();
    if (!won) race->memory.reset();
    ++(won ? won_ : lost_);
    if (outcome.status.ok()) {
      policy_.OnLatency(bytes, since - race->second_after - outcome.held_back);
    }
    if (race->over) return;
    if (won && !race->first_end) policy_.OnLatency(bytes, since);  // the first takes longer still
    if (!won && !race->first_end) {
      race->second_end = std::move(outcome.status);
      return;
    }
    Finish(race);
    if (!won) {
      const std::string second = outcome.status.message();
      outcome = *std::move(race->first_end);
      outcome.status = {outcome.status.code(),
                        fmt::format("{} (and once more, {} ms later: {})", outcome.status.message(),
                                    race->second_after / std::chrono::milliseconds(1), second)};
    }
  }
  if (outcome.status.ok()) {
    race->first_writes->Stop();
    CopyTo(race->request.destination, race->memory.get());
  }
  race->done(std::move(outcome));
}

// Races that get their second request now, which the policy has counted.
std::vector<HedgingStore::RacePtr> HedgingStore::TakeLate(MonotonicTime now, bool has_room) {
  while (!not_late_.empty() && not_late_.begin()->first <= now) {
    RacePtr race = std::move(not_late_.begin()->second);
    not_late_.erase(not_late_.begin());
    race->alarm.reset();
    late_.push_back(std::move(race));
  }
  std::erase_if(late_, [](const RacePtr& race) { return race->over; });
  std::vector<RacePtr> taken;
  while (has_room && !late_.empty() && policy_.TryStart(late_.front()->kept_bytes)) {
    late_.front()->second_runs = true;
    late_.front()->second_after = now - late_.front()->began;
    taken.push_back(std::move(late_.front()));
    late_.pop_front();
  }
  return taken;
}

// On the alarm's thread.
MonotonicTime HedgingStore::Look(MonotonicTime now) {
  const bool has_room = has_room_();  // not under the lock: it takes another
  std::vector<RacePtr> taken;
  MonotonicTime next = now + kIdleHedgeLook;
  {
    const MutexLock lock(mutex_);
    if (stopping_) return next;
    taken = TakeLate(now, has_room);
    if (!not_late_.empty()) next = std::min(next, not_late_.begin()->first);
    if (!late_.empty()) next = std::min(next, now + kHedgeLook);
  }
  for (const RacePtr& race : taken)
    StartSecond(race);
  return next;
}

void HedgingStore::StartSecond(const RacePtr& race) {
  race->memory = std::make_unique<std::byte[]>(race->kept_bytes);
  ReadRequest request = race->request;
  request.destination = InOwnMemory(race->request.destination, race->memory.get());
  Status accepted = inner_->Read(std::move(request), [this, race](ReadOutcome outcome) {
    OnSecond(race, std::move(outcome));
  });
  if (!accepted.ok()) OnSecond(race, {.status = std::move(accepted)});
}

Result<ObjectInfo> HedgingStore::Stat(const std::string& object, Deadline deadline) {
  return inner_->Stat(object, deadline);
}

Result<ObjectListing> HedgingStore::List(Deadline deadline, const ListProgress& progress) {
  return inner_->List(deadline, progress);
}

void HedgingStore::Shutdown() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  alarm_.Stop();
  inner_->Shutdown();
  const MutexLock lock(mutex_);
  late_.clear();
}

void HedgingStore::VisitCounters(const CounterVisitor& visit) const {
  inner_->VisitCounters(visit);
  std::uint64_t won = 0;
  std::uint64_t lost = 0;
  {
    const MutexLock lock(mutex_);
    won = won_;
    lost = lost_;
  }
  const auto count = [&](const char* result, std::uint64_t hedges) {
    visit(MetricKind::kCounter, "optcache_store_hedges_total",
          {{"store", name()}, {"result", result}}, static_cast<double>(hedges));
  };
  count("won", won);
  count("lost", lost);
}

}  // namespace optcache::storage
