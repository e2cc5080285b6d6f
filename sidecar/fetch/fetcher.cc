// Follows each fetch from the question to its end, and each Get until the last of its items is
// answered.
//
//   Start ─► kToAsk ─► kAsked ─┬─► kReceiving ─► bytes from the node
//              ▲               ├─► kOnItsWay ─┐
//              └───────────────┼──────────────┘ asked again
//                              └─ miss ─► (kHeld) ─► kStore ─► bytes from the store, Put if kept
//   no node, no answer, damaged bytes ─────────────►┘
//
// kHeld: a staged sample that is to be put waits while too much waits to be put (put_window.h). A
// fetch that goes to the store is not asked for again, but its Get stays in `asks_` until the node
// has answered or the connection is lost. So a late answer meets its own Get, and a late lease is
// taken over by the read that has begun or is given back. An abandoned fetch keeps its read of the
// store if that has begun: `done` is empty then. Flush sends what has gathered: urgent samples
// first, staged ones only while nothing is held.

#include "sidecar/fetch/fetcher.h"

#include <algorithm>
#include <utility>

namespace optcache::sidecar {
namespace {

// A node that owes answers to this many Gets past their deadline is not to be trusted with more.
constexpr std::size_t kAsksMax = 1024;
constexpr std::uint32_t kWaitMsMax = 1000;
constexpr Duration kLookAgain = std::chrono::milliseconds(10);

}  // namespace

Fetcher::Fetcher(NodePort& node, StorePort& store, Alarms& alarms, FetchOptions options,
                 std::function<void()> on_work)
    : node_(node),
      alarms_(alarms),
      options_(options),
      on_work_(std::move(on_work)),
      store_(store, alarms, options.store_concurrency),
      leases_(node),
      puts_window_(node, options.puts) {}

FetchId Fetcher::Start(Spec spec, Done done) {
  const FetchId id = ++last_id_;
  Fetch& fetch = fetches_[id];
  fetch.spec = std::move(spec);
  fetch.done = std::move(done);
  if (node_.connected()) {
    QueueToAsk(id, fetch);
  } else {
    ReadStoreInstead(id, fetch, Fallback::kNodeDown);
  }
  return id;
}

void Fetcher::MakeUrgent(FetchId id) {
  Fetch* fetch = Find(id);
  if (fetch == nullptr || fetch->spec.urgency == Urgency::kUrgent) return;
  fetch->spec.urgency = Urgency::kUrgent;
  if (fetch->state == State::kToAsk || fetch->state == State::kOnItsWay) QueueToAsk(id, *fetch);
  if (fetch->state == State::kHeld) ReadStore(id, *fetch);
  if (fetch->state == State::kStore) store_.MakeUrgent(fetch->ticket);
}

void Fetcher::Abandon(FetchId id) {
  Fetch* fetch = Find(id);
  if (fetch == nullptr) return;
  fetch->done = nullptr;
  if (fetch->state == State::kStore && !store_.Cancel(fetch->ticket)) return;
  if (fetch->state == State::kStore || fetch->state == State::kHeld) {
    LeaveWindow(*fetch);
    leases_.End(fetch->spec.dataset->key(), fetch->spec.item.id, fetch->lease,
                wire::LeaseEvent::kFailed);
  }
  // What was asked for may still be answered: the Get remembers it, and no lease is forgotten.
  alarms_.Cancel(fetch->alarm);
  fetches_.erase(id);
  on_work_();
}

bool Fetcher::IsBehind() {
  return NodeHasEnough() || !held_.empty() || store_.waiting() > 0 || store_.parked() > 0;
}

// What is left to ask of it may not be asked yet.
bool Fetcher::NodeHasEnough() {
  for (const Urgency urgency : {Urgency::kUrgent, Urgency::kStaged}) {
    const Fetch* next = NextToAsk(urgency);
    if (next != nullptr && !MayAsk(*next)) return true;
  }
  return false;
}

Fetcher::Fetch* Fetcher::Find(FetchId id) {
  const auto found = fetches_.find(id);
  return found == fetches_.end() ? nullptr : &found->second;
}

// --- Asking the node --------------------------------------------------------------------------

void Fetcher::QueueToAsk(FetchId id, Fetch& fetch) {
  alarms_.Cancel(std::exchange(fetch.alarm, 0));
  fetch.state = State::kToAsk;
  to_ask_[static_cast<std::size_t>(fetch.spec.urgency)].push_back(id);
  on_work_();
}

void Fetcher::Flush() {
  leases_.Flush();
  StartHeld();
  while (SendOne(Urgency::kUrgent)) {
  }
  while (held_.empty() && SendOne(Urgency::kStaged)) {
  }
}

// The first that is still to be asked.
Fetcher::Fetch* Fetcher::NextToAsk(Urgency urgency) {
  auto& queue = to_ask_[static_cast<std::size_t>(urgency)];
  while (!queue.empty()) {
    Fetch* fetch = Find(queue.front());
    if (fetch != nullptr && fetch->state == State::kToAsk && fetch->spec.urgency == urgency)
      return fetch;
    queue.pop_front();
  }
  return nullptr;
}

// Sends one Get with as many waiting fetches of one stream as it may hold. False: there are none,
// or they may not be asked yet.
bool Fetcher::SendOne(Urgency urgency) {
  auto& queue = to_ask_[static_cast<std::size_t>(urgency)];
  Ask ask;
  while (const Fetch* fetch = NextToAsk(urgency)) {
    const ByteCount size = fetch->spec.buffer->bytes().size();
    if (ask.fetches.empty() && !MayAsk(*fetch)) return false;
    const bool fits =
        ask.fetches.size() < options_.items_per_get && ask.bytes + size <= options_.bytes_per_get &&
        ask.get.dataset == fetch->spec.dataset->key() && ask.get.stream == fetch->spec.stream;
    if (!ask.fetches.empty() && !fits) break;
    ask.get.dataset = fetch->spec.dataset->key();
    ask.get.stream = fetch->spec.stream;
    ask.get.mode = urgency == Urgency::kUrgent ? wire::GetMode::kUrgent : wire::GetMode::kStage;
    ask.get.items.push_back(fetch->spec.item);
    ask.fetches.push_back(queue.front());
    ask.bytes += size;
    queue.pop_front();
  }
  if (ask.fetches.empty()) return false;
  SendGet(std::move(ask));
  return true;
}

// As the first of a Get.
bool Fetcher::MayAsk(const Fetch& fetch) const {
  if (fetch.spec.urgency == Urgency::kStaged && gets_in_flight_ >= options_.gets_in_flight)
    return false;
  return MayBeInFlight(fetch.spec.buffer->bytes().size());
}

bool Fetcher::MayBeInFlight(ByteCount size) const {
  if (items_in_flight_ >= options_.items_in_flight) return false;
  const ByteCount all = bytes_in_flight_ + size;
  if (all <= options_.bytes_in_flight) return true;
  ByteCount largest = size;
  for (const auto& [_, ask] : asks_) {
    if (ask.counted) largest = std::max(largest, ask.bytes);
  }
  return all - largest <= options_.bytes_in_flight;
}

void Fetcher::SendGet(Ask ask) {
  if (++last_request_ == 0) ++last_request_;  // 0 belongs to messages that nobody answers
  const std::uint32_t request = last_request_;
  for (const FetchId id : ask.fetches) {
    Fetch& fetch = *Find(id);
    fetch.state = State::kAsked;
    fetch.request = request;
  }
  ask.open = ask.fetches.size();
  ask.counted = true;
  items_in_flight_ += ask.fetches.size();
  bytes_in_flight_ += ask.bytes;
  if (ask.get.mode == wire::GetMode::kStage) ++gets_in_flight_;
  StartAlarm(request, ask);
  node_.Send(request, ask.get);
  asks_.insert_or_assign(request, std::move(ask));
}

void Fetcher::StopCounting(Ask& ask) {
  if (!std::exchange(ask.counted, false)) return;
  items_in_flight_ -= ask.fetches.size();
  bytes_in_flight_ -= ask.bytes;
  if (ask.get.mode == wire::GetMode::kStage) --gets_in_flight_;
  on_work_();
}

void Fetcher::StartAlarm(std::uint32_t request, Ask& ask) {
  ask.progress = Progress();
  const bool urgent = ask.get.mode == wire::GetMode::kUrgent;
  ask.alarm = alarms_.After(urgent ? options_.urgent_deadline : options_.staged_deadline,
                            [this, request] { OnAskDeadline(request); });
}

// What has begun to come goes on coming, or the connection is lost: it is not read twice.
void Fetcher::OnAskDeadline(std::uint32_t request) {
  const auto found = asks_.find(request);
  if (found == asks_.end()) return;
  Ask& ask = found->second;
  const bool silent = Progress() == ask.progress;
  const std::vector<FetchId> overdue = ask.fetches;
  bool receiving = false;
  for (const FetchId id : overdue) {
    Fetch* fetch = Find(id);
    if (fetch == nullptr || fetch->request != request) continue;
    if (fetch->state == State::kReceiving) receiving = true;
    if (fetch->state == State::kAsked) ReadStoreInstead(id, *fetch, Fallback::kNoAnswer);
  }
  if (receiving && !silent) return StartAlarm(request, ask);
  StopCounting(ask);
  if (silent || asks_.size() > kAsksMax) {
    node_.Drop(Status(Code::kDeadlineExceeded, "the node left a Get unanswered for too long"));
  }
}

// --- What the node says -----------------------------------------------------------------------

void Fetcher::OnNodeLost() {
  for (auto& [request, ask] : asks_)
    alarms_.Cancel(ask.alarm);
  asks_.clear();
  gets_in_flight_ = 0;
  items_in_flight_ = 0;
  bytes_in_flight_ = 0;
  leases_.Clear();
  std::vector<FetchId> lost;
  for (auto& [id, fetch] : fetches_) {
    fetch.lease = 0;
    if (fetch.state != State::kStore) lost.push_back(id);
  }
  std::sort(lost.begin(), lost.end());  // in the order in which they were wanted
  for (const FetchId id : lost) {
    Fetch& fetch = *Find(id);
    if (fetch.state == State::kHeld) {
      ReadStore(id, fetch);
    } else {
      ReadStoreInstead(id, fetch, Fallback::kNodeLost);
    }
  }
}

Fetcher::Ask* Fetcher::FindItem(std::uint32_t request, std::uint32_t index) {
  ++answers_;
  const auto found = asks_.find(request);
  if (found == asks_.end() || index >= found->second.fetches.size()) return nullptr;
  return found->second.fetches[index] == 0 ? nullptr : &found->second;
}

// Marks the item as answered; the Get is forgotten with its last one.
FetchId Fetcher::TakeItem(std::uint32_t request, std::uint32_t index) {
  Ask& ask = asks_.at(request);
  const FetchId id = std::exchange(ask.fetches[index], 0);
  if (--ask.open == 0) {
    StopCounting(ask);
    alarms_.Cancel(ask.alarm);
    asks_.erase(request);
  }
  return id;
}

void Fetcher::OnAnswer(std::uint32_t request, const wire::SampleReply& reply) {
  Ask* ask = FindItem(request, reply.index);
  if (ask == nullptr) return;
  const wire::Get get{
      .dataset = ask->get.dataset, .mode = ask->get.mode, .items = {ask->get.items[reply.index]}};
  const FetchId id = TakeItem(request, reply.index);
  Fetch* fetch = Find(id);
  switch (reply.answer) {
    case wire::Answer::kMissKeep:
    case wire::Answer::kMissDrop:
      OnMiss(id, get, reply);
      return;
    case wire::Answer::kOnItsWay:
      if (fetch != nullptr && fetch->state == State::kAsked) {
        Wait(id, *fetch, get.mode, reply.wait_ms);
      }
      return;
    case wire::Answer::kHere:
    case wire::Answer::kPeer:
    case wire::Answer::kAbsent:
      break;  // not what a Get of ours is answered, without a payload
  }
  if (fetch != nullptr && fetch->state == State::kAsked) {
    ReadStoreInstead(id, *fetch, Fallback::kCorrupt);
  }
}

// Also after the deadline: the lease is then taken over by the read that has begun without it.
void Fetcher::OnMiss(FetchId id, const wire::Get& get, const wire::SampleReply& reply) {
  Fetch* fetch = Find(id);
  const SampleId sample = get.items.front().id;
  if (fetch == nullptr) {
    leases_.End(get.dataset, sample, reply.lease, wire::LeaseEvent::kFailed);
    on_work_();
    return;
  }
  fetch->keep = reply.answer == wire::Answer::kMissKeep;
  fetch->lease = reply.lease;
  leases_.Hold(get.dataset, sample, reply.lease);
  RenewLeasesLater();
  if (fetch->state == State::kAsked) ReadStore(id, *fetch);
}

void Fetcher::Wait(FetchId id, Fetch& fetch, wire::GetMode asked_as, std::uint32_t wait_ms) {
  const MonotonicTime now = alarms_.Now();
  if (fetch.give_up_at == MonotonicTime{}) fetch.give_up_at = now + options_.arrival_deadline;
  if (now >= fetch.give_up_at) {
    ReadStoreInstead(id, fetch, Fallback::kNeverCame);
    return;
  }
  if (asked_as == wire::GetMode::kStage && fetch.spec.urgency == Urgency::kUrgent) {
    QueueToAsk(id, fetch);  // a trainer has begun to wait meanwhile
    return;
  }
  fetch.state = State::kOnItsWay;
  const auto wait = std::chrono::milliseconds(std::clamp<std::uint32_t>(wait_ms, 1, kWaitMsMax));
  fetch.alarm = alarms_.After(wait, [this, id] {
    Fetch* due = Find(id);
    if (due != nullptr && due->state == State::kOnItsWay) QueueToAsk(id, *due);
  });
}

BufferRef Fetcher::OnPayloadStart(std::uint32_t request, const wire::SampleReply& reply,
                                  ByteCount length) {
  Ask* ask = FindItem(request, reply.index);
  if (ask == nullptr) return nullptr;
  Fetch* fetch = Find(ask->fetches[reply.index]);
  const bool wanted = fetch != nullptr && fetch->state == State::kAsked &&
                      fetch->request == request && fetch->spec.buffer->bytes().size() == length;
  if (!wanted) return nullptr;
  fetch->state = State::kReceiving;
  return fetch->spec.buffer;
}

void Fetcher::OnPayload(std::uint32_t request, const wire::SampleReply& reply,
                        const Status& status) {
  if (FindItem(request, reply.index) == nullptr) return;
  const FetchId id = TakeItem(request, reply.index);
  Fetch* fetch = Find(id);
  if (fetch == nullptr) return;
  const bool empty = fetch->spec.buffer->bytes().empty();  // cannot be damaged, only thrown away
  if (fetch->state == State::kReceiving && fetch->request == request && (status.ok() || empty)) {
    Finish(id, reply.answer == wire::Answer::kPeer ? Source::kPeer : Source::kNode);
    return;
  }
  if (fetch->state == State::kAsked || fetch->state == State::kReceiving) {
    ReadStoreInstead(id, *fetch, Fallback::kCorrupt);
  }
}

// --- Reading the store ------------------------------------------------------------------------

void Fetcher::ReadStoreInstead(FetchId id, Fetch& fetch, Fallback why) {
  ++fallbacks_[static_cast<std::size_t>(why)];
  ReadStore(id, fetch);
}

void Fetcher::ReadStore(FetchId id, Fetch& fetch) {
  alarms_.Cancel(std::exchange(fetch.alarm, 0));
  if (fetch.keep && fetch.spec.urgency == Urgency::kStaged && node_.connected()) {
    const ByteCount size = fetch.spec.buffer->bytes().size();
    if (!puts_window_.Admits(size)) {
      if (std::exchange(fetch.state, State::kHeld) != State::kHeld) held_.push_back(id);
      return;
    }
    puts_window_.Begin(size);
    fetch.in_window = true;
  }
  fetch.state = State::kStore;
  fetch.ticket =
      store_.Add({.dataset = fetch.spec.dataset,
                  .id = fetch.spec.item.id,
                  .into = fetch.spec.buffer,
                  .done = [this, id](const Result<std::uint32_t>& crc) { OnStoreRead(id, crc); },
                  .due = fetch.spec.due,
                  .keep = fetch.keep},
                 fetch.spec.urgency == Urgency::kUrgent);
}

// What was held, as far as there is room for it now. Looks again before long if there is none.
void Fetcher::StartHeld() {
  while (!held_.empty()) {
    const FetchId id = held_.front();
    Fetch* fetch = Find(id);
    if (fetch != nullptr && fetch->state == State::kHeld) {
      ReadStore(id, *fetch);
      if (fetch->state == State::kHeld) break;
    }
    held_.pop_front();
  }
  if (held_.empty() || look_again_ != 0) return;
  look_again_ = alarms_.After(kLookAgain, [this] {
    look_again_ = 0;
    on_work_();
  });
}

void Fetcher::LeaveWindow(Fetch& fetch) {
  if (std::exchange(fetch.in_window, false)) puts_window_.End(fetch.spec.buffer->bytes().size());
}

void Fetcher::OnStoreRead(FetchId id, const Result<std::uint32_t>& crc) {
  Fetch& fetch = *Find(id);
  LeaveWindow(fetch);
  if (crc) {
    GiveBack(fetch, *crc);
    Finish(id, Source::kStore);
    return;
  }
  leases_.End(fetch.spec.dataset->key(), fetch.spec.item.id, fetch.lease,
              wire::LeaseEvent::kFailed);
  Finish(id, Error(crc.error()));
}

void Fetcher::GiveBack(const Fetch& fetch, std::uint32_t crc) {
  const wire::DatasetKey dataset = fetch.spec.dataset->key();
  const bool puts = fetch.keep && node_.connected();
  const bool withheld = puts && !puts_window_.TakesPut();
  puts_withheld_ += withheld ? 1U : 0U;
  if (!puts || withheld) {
    leases_.End(dataset, fetch.spec.item.id, fetch.lease, wire::LeaseEvent::kDone);
    return;
  }
  leases_.Spend(dataset, fetch.spec.item.id, fetch.lease);
  ++puts_;
  node_.Put({.dataset = dataset,
             .stream = fetch.spec.stream,
             .item = fetch.spec.item,
             .lease = fetch.lease,
             .crc = crc},
            fetch.spec.buffer);
}

void Fetcher::Finish(FetchId id, Result<Source> result) {
  auto node = fetches_.extract(id);
  Fetch& fetch = node.mapped();
  if (result) {
    const auto source = static_cast<std::size_t>(*result);
    Fetched& fetched = fetched_[fetch.spec.dataset->name()];
    ++fetched.samples[source];
    fetched.bytes[source] += fetch.spec.buffer->bytes().size();
  }
  on_work_();
  if (fetch.done) fetch.done(std::move(result));
}

void Fetcher::RenewLeasesLater() {
  if (renewal_ != 0 || leases_.empty()) return;
  renewal_ = alarms_.After(options_.lease_renewal, [this] {
    renewal_ = 0;
    leases_.Renew();
    RenewLeasesLater();
  });
}

void Fetcher::VisitCounters(const CounterVisitor& visitor) const {
  store_.VisitCounters(visitor);
  for (const auto& [dataset, fetched] : fetched_) {
    for (std::size_t i = 0; i < kSources; ++i) {
      const MetricLabels labels = {{"source", std::string(kSourceNames[i])}, {"dataset", dataset}};
      visitor(MetricKind::kCounter, "optcache_fetched_samples_total", labels,
              static_cast<double>(fetched.samples[i]));
      visitor(MetricKind::kCounter, "optcache_fetched_bytes_total", labels,
              static_cast<double>(fetched.bytes[i]));
    }
  }
  for (std::size_t i = 0; i < kFallbacks; ++i) {
    visitor(MetricKind::kCounter, "optcache_client_fallback_total",
            {{"reason", std::string(kFallbackNames[i])}}, static_cast<double>(fallbacks_[i]));
  }
  visitor(MetricKind::kCounter, "optcache_puts_sent_total", {}, static_cast<double>(puts_));
  visitor(MetricKind::kCounter, "optcache_puts_withheld_total", {},
          static_cast<double>(puts_withheld_));
  visitor(MetricKind::kGauge, "optcache_puts_held_reads", {}, static_cast<double>(held_.size()));
  visitor(MetricKind::kGauge, "optcache_node_connected", {}, node_.connected() ? 1 : 0);
}

}  // namespace optcache::sidecar
