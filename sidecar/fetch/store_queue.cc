// Decides at each change which waiting reads of the stores begin.
//
//   Add ─► waiting_ ── StartNext ─► a run ─────────► OnEnd, for each of its samples
//                                     │ ▲
//      the store is silent, or is     ▼ │ the store is asked again
//      to be asked again later      parked (takes no place)
//
// Each waiting read stands in one queue of its store: the urgent one, by the order of asking, or
// that of its rank's pace, by its place in the order. Only the heads of these queues can be next,
// so FindNext looks at a few per store and not at all that waits. MayBegin holds a store's next
// read back for what is due before it; the store is skipped then, and reads of other stores begin.
// StartNext runs whenever something may have changed: a read comes, becomes urgent, waits, or ends.
// Two alarms look again for what time alone changes. A run of several neighbours is one read with
// one place. `runs` of a store has those that are not parked; running_ and parked_ count the two
// kinds.

#include "sidecar/fetch/store_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "sidecar/fetch/joined_read.h"

namespace optcache::sidecar {
namespace {

// The stores send so much meanwhile: below it no read is held back.
constexpr Duration kAlways = std::chrono::milliseconds(50);
constexpr Duration kUrgentHeldMax = std::chrono::seconds(1);
constexpr Duration kLookAgainIn = std::chrono::milliseconds(100);
constexpr Duration kSilenceLook = std::chrono::seconds(1);
constexpr std::size_t kSilentShare = 4;  // of the places, for new reads of a silent store

// An urgent one has been asked for. Without a pace, others are never due.
MonotonicTime DueAt(const ReadDue& due, const std::optional<MonotonicTime>& urgent_since,
                    MonotonicTime now) {
  if (urgent_since) return *urgent_since;
  return due.pace == nullptr ? MonotonicTime::max() : due.pace->DueAt(due.place, now);
}

}  // namespace

// --- What waits -------------------------------------------------------------------------------

StoreQueue::Store& StoreQueue::StoreOf(const DatasetPort& dataset) {
  return stores_.try_emplace(&dataset, concurrency_).first->second;
}

StoreQueue::Ticket StoreQueue::Add(Read read, bool urgent) {
  const Ticket ticket = ++last_ticket_;
  Store& store = StoreOf(*read.dataset);
  if (const auto place = read.dataset->PlaceOf(read.id))
    store.by_place.emplace(std::pair(*place, ticket), ticket);
  Waiting& waiting = waiting_[ticket];
  waiting = {.read = std::move(read), .store = &store};
  if (urgent) waiting.urgent_since = alarms_.Now();
  Enqueue(ticket, waiting);
  ++store.waiting;
  StartNext();
  return ticket;
}

void StoreQueue::MakeUrgent(Ticket ticket) {
  if (const auto begun = begun_.find(ticket); begun != begun_.end()) {
    auto& [run, urgent_since] = begun->second;
    if (urgent_since) return;
    urgent_since = alarms_.Now();
    run->urgent_since.insert(*urgent_since);
    return;
  }
  const auto found = waiting_.find(ticket);
  if (found == waiting_.end() || found->second.urgent_since) return;
  Dequeue(ticket, found->second);
  found->second.urgent_since = alarms_.Now();
  Enqueue(ticket, found->second);
  StartNext();  // it may be held back no longer
}

bool StoreQueue::Cancel(Ticket ticket) {
  if (Leave(ticket) || !waiting_.contains(ticket)) return false;
  Take(ticket);
  return true;
}

StoreQueue::Queue& StoreQueue::QueueOf(const Waiting& waiting) {
  Store& store = *waiting.store;
  return waiting.urgent_since ? store.urgent : store.staged[waiting.read.due.pace.get()];
}

void StoreQueue::Enqueue(Ticket ticket, Waiting& waiting) {
  const ReadDue& due = waiting.read.due;
  const bool by_place = due.pace != nullptr && !waiting.urgent_since;
  waiting.turn = by_place ? due.place : ++last_turn_;
  QueueOf(waiting).emplace(waiting.turn, ticket);
}

void StoreQueue::Dequeue(Ticket ticket, const Waiting& waiting) {
  Queue& queue = QueueOf(waiting);
  queue.erase({waiting.turn, ticket});
  if (queue.empty() && !waiting.urgent_since)
    waiting.store->staged.erase(waiting.read.due.pace.get());
}

// Out of all that knows of waiting reads.
StoreQueue::Waiting StoreQueue::Take(Ticket ticket) {
  const auto found = waiting_.find(ticket);
  Dequeue(ticket, found->second);
  Waiting taken = std::move(found->second);
  waiting_.erase(found);
  --taken.store->waiting;
  if (const auto place = taken.read.dataset->PlaceOf(taken.read.id))
    taken.store->by_place.erase({*place, ticket});
  return taken;
}

StoreQueue::Together StoreQueue::Alone(Ticket ticket) const {
  return {.tickets = {ticket}, .bytes = waiting_.at(ticket).read.into->bytes().size()};
}

// The read, and those that wait right after and right before it, by their places.
StoreQueue::Together StoreQueue::WithNeighbours(Ticket ticket) const {
  const Waiting& first = waiting_.at(ticket);
  const auto place = first.read.dataset->PlaceOf(first.read.id);
  if (!place) return Alone(ticket);
  JoinedRead joined(*place);
  std::vector<Ticket> before;
  std::vector<Ticket> after;
  const auto& all = first.store->by_place;
  const auto here = all.find({*place, ticket});
  for (auto next = std::next(here); next != all.end() && joined.TakeAfter(next->first.first);
       ++next)
    after.push_back(next->second);
  for (auto next = here; next != all.begin() && joined.TakeBefore(std::prev(next)->first.first);
       --next)
    before.push_back(std::prev(next)->second);
  Together together{.tickets = {before.rbegin(), before.rend()},
                    .bytes = joined.whole().end - joined.whole().begin};
  together.tickets.push_back(ticket);
  together.tickets.insert(together.tickets.end(), after.begin(), after.end());
  return together;
}

// --- What begins ------------------------------------------------------------------------------

// Urgent reads before others; of either kind what is due first.
std::optional<StoreQueue::Next> StoreQueue::FindNext(MonotonicTime now) {
  std::optional<Next> first;
  for (auto& [dataset, store] : stores_) {
    if (store.held || HasItsShare(store, now)) continue;
    const auto consider_head = [&](const Queue& queue) {
      const auto [turn, ticket] = *queue.begin();
      const Waiting& waiting = waiting_.at(ticket);
      const Next next{.store = &store,
                      .ticket = ticket,
                      .urgent = waiting.urgent_since.has_value(),
                      .due = DueAt(waiting.read.due, waiting.urgent_since, now),
                      .turn = turn};
      if (!first || next < *first) first = next;
    };
    if (!store.urgent.empty()) {
      consider_head(store.urgent);
    } else if (parked_ - silent_ < kParkedStagedMax) {
      for (const auto& [pace, queue] : store.staged)
        consider_head(queue);
    }
  }
  return first;
}

ByteCount StoreQueue::UnderWay(const Store& store) {
  ByteCount bytes = 0;
  for (const auto& [number, run] : store.runs)
    bytes += run->bytes;
  return bytes;
}

bool StoreQueue::IsLittle(const Store& store, ByteCount bytes) {
  const std::optional<Duration> time = store.speed.TimeFor(bytes);
  return !time || *time <= kAlways;
}

// Beside those that run. What of them has come is not known: all of it counts as still to come.
bool StoreQueue::MayBegin(const Next& next, ByteCount bytes, MonotonicTime now) const {
  const Store& store = *next.store;
  if (store.runs.size() < store.speed.width()) return true;
  if (next.urgent && now - next.due >= kUrgentHeldMax) return true;
  const ByteCount under_way = UnderWay(store);
  const auto is_little = [&store](ByteCount of) { return IsLittle(store, of); };
  if (is_little(under_way)) return true;
  const MonotonicTime in_time = now + *store.speed.TimeFor(under_way + bytes);
  ByteCount since = bytes;  // its own, and what began after the run that is looked at
  for (auto at = store.runs.rbegin(); at != store.runs.rend(); ++at) {
    const RunRef& run = at->second;
    const auto urgent_since =
        run->urgent_since.empty() ? std::nullopt : std::optional(*run->urgent_since.begin());
    const bool passes = next.urgent && (!urgent_since || is_little(since));
    since += run->bytes;
    if (passes || run->wanted == 0) continue;
    const MonotonicTime due = DueAt(run->due, urgent_since, now);
    if (due < next.due && due < in_time) return false;
  }
  return true;
}

void StoreQueue::StartNext() {
  const MonotonicTime now = alarms_.Now();
  NoteArrivals(now);
  ParkSilent(now);
  for (auto& [dataset, store] : stores_)
    store.held = false;
  while (running_ < concurrency_ && parked_ < kParkedMax) {
    const std::optional<Next> next = FindNext(now);
    if (!next) break;
    Together together = Alone(next->ticket);
    next->store->held = !MayBegin(*next, together.bytes, now);
    if (next->store->held) continue;
    Together all = WithNeighbours(next->ticket);
    if (all.tickets.size() > 1 && MayBegin(*next, all.bytes, now)) together = std::move(all);
    Start(next->ticket, together);
  }
  NoteSpeeds(now);
  if (IsFull() || (silent_ > 0 && !waiting_.empty())) LookLater(silence_look_, kSilenceLook);
}

void StoreQueue::NoteArrivals(MonotonicTime now) {
  for (auto& [dataset, store] : stores_) {
    const ByteCount arrived = store_.Arrived(*dataset);
    if (arrived != std::exchange(store.arrived, arrived)) store.heard = now;
  }
}

void StoreQueue::ParkSilent(MonotonicTime now) {
  if (!IsFull()) return;
  for (auto& [dataset, store] : stores_) {
    if (now - store.heard < kSilentAfter) continue;
    for (auto next = store.runs.begin(); next != store.runs.end() && silent_ < concurrency_;) {
      const RunRef run = (next++)->second;
      if (now - run->asked < kSilentAfter) continue;
      SetSilent(*run, true);
      SetParked(run, true);
    }
  }
}

void StoreQueue::SetSilent(Run& run, bool silent) {
  if (run.silent == silent) return;
  run.silent = silent;
  silent ? ++silent_ : --silent_;
  silent ? ++run.store->silent : --run.store->silent;
}

// The places that its silent reads have given up are for other stores, too.
bool StoreQueue::HasItsShare(const Store& store, MonotonicTime now) const {
  return store.silent > 0 && now - store.heard >= kSilentAfter &&
         store.runs.size() >= std::max<std::size_t>(concurrency_ / kSilentShare, 1);
}

// A store is full if it has most of the places: of a few, it does not show what it can do.
void StoreQueue::NoteSpeeds(MonotonicTime now) {
  using Load = StoreSpeed::Load;
  bool any_held = false;
  for (auto& [dataset, store] : stores_) {
    const bool is_full = running_ >= concurrency_ && 2 * store.runs.size() >= concurrency_;
    store.speed.Note(now, store.arrived,
                     store.silent > 0 ? Load::kLight
                     : store.held     ? Load::kHeld
                     : is_full        ? Load::kFull
                                      : Load::kLight);
    any_held = any_held || store.held;
  }
  if (any_held) LookLater(held_look_, kLookAgainIn);
}

// Time alone may change what is held back or silent, if nothing else happens.
void StoreQueue::LookLater(Alarms::Id& look, Duration wait) {
  if (look != 0) return;
  look = alarms_.After(wait, [this, &look] {
    look = 0;
    StartNext();
  });
}

// --- What runs --------------------------------------------------------------------------------

// What the store says after the read's end does not count.
void StoreQueue::OnWait(const RunRef& run, bool waits) {
  if (run->left == 0) return;
  SetSilent(*run, false);
  if (!waits) run->asked = alarms_.Now();
  if (run->parked != waits) SetParked(run, waits);
  StartNext();
}

void StoreQueue::SetParked(const RunRef& run, bool parked) {
  run->parked = parked;
  run->begun = {};  // the wait says nothing of the store's speed
  --(parked ? running_ : parked_);
  ++(parked ? parked_ : running_);
  if (parked) {
    run->store->runs.erase(run->number);
  } else {
    run->store->runs.emplace(run->number, run);
  }
}

// The sample of a run that has ended, or is no longer wanted. False: there is none.
bool StoreQueue::Leave(Ticket ticket) {
  const auto begun = begun_.find(ticket);
  if (begun == begun_.end()) return false;
  const auto& [run, urgent_since] = begun->second;
  --run->wanted;
  if (urgent_since) run->urgent_since.erase(run->urgent_since.find(*urgent_since));
  begun_.erase(begun);
  return true;
}

void StoreQueue::OnEnd(Run& run, Ticket ticket) {
  Leave(ticket);
  if (--run.left > 0) return;
  --(run.parked ? parked_ : running_);
  SetSilent(run, false);
  run.store->runs.erase(run.number);
  run.store->speed.NoteEnd(run.begun, alarms_.Now());
}

void StoreQueue::Start(Ticket first, const Together& together) {
  ++running_;
  joined_ += together.tickets.size() - 1;
  const Waiting& named = waiting_.at(first);
  const DatasetPort& dataset = *named.read.dataset;
  // A read that begins beside much more does not tell whether the store takes long to answer.
  StoreSpeed::Begun begun;
  if (IsLittle(*named.store, UnderWay(*named.store)))
    begun = named.store->speed.Begin(together.bytes, alarms_.Now());
  // Shared by the ends of the samples, which come one by one.
  const auto run = std::make_shared<Run>(Run{.store = named.store,
                                             .number = ++last_run_,
                                             .left = together.tickets.size(),
                                             .wanted = together.tickets.size(),
                                             .asked = alarms_.Now(),
                                             .begun = begun,
                                             .bytes = together.bytes,
                                             .due = named.read.due});
  run->store->runs.emplace(run->number, run);
  std::vector<StorePort::Part> parts;
  parts.reserve(together.tickets.size());
  for (const Ticket ticket : together.tickets) {
    Waiting taken = Take(ticket);
    if (taken.urgent_since) run->urgent_since.insert(*taken.urgent_since);
    begun_.emplace(ticket, Begun{.run = run, .urgent_since = taken.urgent_since});
    auto end = [this, run, ticket, done = std::move(taken.read.done)](Result<std::uint32_t> crc) {
      OnEnd(*run, ticket);
      if (!crc) ++failures_;
      StartNext();
      done(std::move(crc));
    };
    parts.push_back({.id = taken.read.id,
                     .into = std::move(taken.read.into),
                     .done = std::move(end),
                     .keep = taken.read.keep});
  }
  const auto on_wait = [this, run](bool waits) { OnWait(run, waits); };
  if (parts.size() > 1) return store_.ReadTogether(dataset, std::move(parts), on_wait);
  store_.Read(dataset, std::move(parts.front()), on_wait);
}

void StoreQueue::VisitCounters(const CounterVisitor& visitor) const {
  visitor(MetricKind::kCounter, "optcache_store_read_failures_total", {},
          static_cast<double>(failures_));
  visitor(MetricKind::kCounter, "optcache_store_reads_joined_total", {},
          static_cast<double>(joined_));
  const auto reads = [&](const char* state, std::size_t count) {
    visitor(MetricKind::kGauge, "optcache_store_queue_reads", {{"state", state}},
            static_cast<double>(count));
  };
  reads("running", running_);
  reads("waiting", waiting_.size());
  reads("parked", parked_);
  for (const auto& [dataset, store] : stores_) {
    const MetricLabels labels = {{"dataset", dataset->name()}};
    visitor(MetricKind::kGauge, "optcache_store_bandwidth_bytes", labels,
            store.speed.BytesPerSecond());
    visitor(MetricKind::kGauge, "optcache_store_reads_always", labels,
            static_cast<double>(store.speed.width()));
    visitor(MetricKind::kGauge, "optcache_store_reads_deferred", labels,
            static_cast<double>(store.held ? store.waiting : 0));
  }
}

}  // namespace optcache::sidecar
