// Carries each sample from the list to one of its ends: held, read, no room, or failed.
//
//   samples_, again_ ─► asks_ ─┬─ a node has it ────────────────────────► held
//         ▲                    ├─ miss to keep ─► reading_ ─► putting_ ─► read, or no room
//         │                    ├─ miss to drop ─────────────────────────► no room
//         └─── in a moment ────┴─ no lease, or on its way
//
// A sample is in one of these places at a time, or waits for an alarm to be asked again. in_flight_
// has the bytes of asks_, reading_ and putting_, and bounds them. When the node is lost, asks and
// sent puts are asked again: a put that has arrived shows as held. Reads of the store go on, and
// are put when the node is back. Watch looks every second: it drops a node that owes an answer and
// is silent, and fails a warm-up in which no sample ends for two minutes while the store is not
// being read.

#include "sidecar/programs/warmer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace optcache::sidecar {
namespace {

constexpr Duration kWatchEvery = std::chrono::seconds(1);
constexpr std::uint32_t kWaitMsMax = 1000;

}  // namespace

Warmer::Warmer(const DatasetPort& dataset, std::vector<SampleId> samples, NodePort& node,
               StorePort& store, Alarms& alarms, WarmOptions options, std::function<void()> on_end)
    : dataset_(dataset),
      samples_(std::move(samples)),
      node_(node),
      alarms_(alarms),
      options_(options),
      on_end_(std::move(on_end)),
      memory_(arena_, 2 * options.memory, {}),
      store_(store, alarms, options.store_concurrency),
      leases_(node) {
  counts_.samples = samples_.size();
  for (const SampleId id : samples_)
    counts_.bytes += dataset_.SizeOf(id);
}

void Warmer::Start() {
  heard_at_ = moved_at_ = alarms_.Now();
  alarms_.After(kWatchEvery, [this] { Watch(); });
  WorkLater();
}

void Warmer::Stop(Status why) {
  if (result_) return;
  result_ = std::move(why);
  for (auto& [id, reading] : reading_) {
    if (store_.Cancel(reading.ticket))
      leases_.End(dataset_.key(), id, reading.lease, wire::LeaseEvent::kFailed);
  }
  leases_.Flush();
  alarms_.At(alarms_.Now(), [this] { on_end_(); });
}

void Warmer::WorkLater() {
  if (result_ || std::exchange(work_due_, true)) return;
  alarms_.At(alarms_.Now(), [this] { Work(); });
}

void Warmer::Work() {
  work_due_ = false;
  if (result_) return;
  leases_.Flush();
  if (counts_.ended() == counts_.samples) return Stop(Outcome());
  while (node_.connected() && asks_.size() < options_.gets_in_flight && SendOne()) {
  }
}

std::optional<SampleId> Warmer::NextToAsk() const {
  if (!again_.empty()) return again_.front();
  if (next_ < samples_.size()) return samples_[next_];
  return std::nullopt;
}

// Sends one Get with as many samples as it may hold and there is memory for. False: there are none.
bool Warmer::SendOne() {
  wire::Get get{.dataset = dataset_.key(), .mode = wire::GetMode::kStage, .items = {}};
  Ask ask;
  while (ask.ids.size() < options_.items_per_get) {
    const std::optional<SampleId> id = NextToAsk();
    if (!id) break;
    const ByteCount size = dataset_.SizeOf(*id);
    if (in_flight_ > 0 && in_flight_ + size > options_.memory) break;
    in_flight_ += size;
    get.items.push_back({.id = *id});
    ask.ids.push_back(*id);
    again_.empty() ? void(++next_) : again_.pop_front();
  }
  if (ask.ids.empty()) return false;
  ask.open = ask.ids.size();
  if (++last_request_ == 0) ++last_request_;  // 0 belongs to messages that nobody answers
  node_.Send(last_request_, get);
  asks_.insert_or_assign(last_request_, std::move(ask));
  return true;
}

// --- What the node says -----------------------------------------------------------------------

void Warmer::OnNodeUp() {
  heard_at_ = alarms_.Now();
  // Read while the node was away: the lease has gone with it.
  for (auto& [id, put] : putting_) {
    if (!put.sent) SendPut(id, put, 0);
  }
  WorkLater();
}

void Warmer::OnNodeLost() {
  leases_.Clear();
  for (auto& [id, reading] : reading_)
    reading.lease = 0;
  const auto ask_again = [this](SampleId id) {
    in_flight_ -= dataset_.SizeOf(id);
    again_.push_back(id);
  };
  for (const auto& [request, ask] : asks_) {
    for (const SampleId id : ask.ids) {
      if (id != kNoSample) ask_again(id);
    }
  }
  asks_.clear();
  // What was sent may have arrived: the node says so when it is asked.
  std::erase_if(putting_, [&](const auto& put) {
    if (put.second.sent) ask_again(put.first);
    return put.second.sent;
  });
}

std::optional<SampleId> Warmer::TakeAnswered(std::uint32_t request, std::uint32_t index) {
  heard_at_ = alarms_.Now();
  const auto found = asks_.find(request);
  if (found == asks_.end() || index >= found->second.ids.size()) return std::nullopt;
  const SampleId id = std::exchange(found->second.ids[index], kNoSample);
  if (id == kNoSample) return std::nullopt;
  if (--found->second.open == 0) asks_.erase(found);
  WorkLater();
  return id;
}

void Warmer::OnAnswer(std::uint32_t request, const wire::SampleReply& reply) {
  const std::optional<SampleId> id = TakeAnswered(request, reply.index);
  if (!id) return;
  const bool miss =
      reply.answer == wire::Answer::kMissKeep || reply.answer == wire::Answer::kMissDrop;
  if (!miss || reply.lease == 0) {
    // Another reads it just now, or the node cannot say: it is asked again.
    unknown_ = miss;
    in_flight_ -= dataset_.SizeOf(*id);
    const auto wait =
        std::chrono::milliseconds(std::clamp<std::uint32_t>(reply.wait_ms, 1, kWaitMsMax));
    return AskLater(*id, miss ? options_.ask_again : Duration(wait));
  }
  if (reply.answer == wire::Answer::kMissKeep) return ReadStore(*id, reply.lease);
  leases_.End(dataset_.key(), *id, reply.lease, wire::LeaseEvent::kFailed);
  Ended(*id, counts_.no_room);
}

// That a node has it is all that is wanted.
BufferRef Warmer::OnPayloadStart(std::uint32_t /*request*/, const wire::SampleReply& /*reply*/,
                                 ByteCount /*length*/) {
  heard_at_ = alarms_.Now();
  return nullptr;
}

void Warmer::OnPayload(std::uint32_t request, const wire::SampleReply& reply,
                       const Status& /*status*/) {
  const std::optional<SampleId> id = TakeAnswered(request, reply.index);
  if (!id) return;
  counts_.held_bytes += dataset_.SizeOf(*id);
  Ended(*id, counts_.held);
}

void Warmer::AskLater(SampleId id, Duration wait) {
  alarms_.After(wait, [this, id] {
    again_.push_back(id);
    WorkLater();
  });
}

// --- From the store into the node ---------------------------------------------------------------

void Warmer::ReadStore(SampleId id, wire::LeaseId lease) {
  leases_.Hold(dataset_.key(), id, lease);
  RenewLeasesLater();
  Reading& reading = reading_[id];
  reading.lease = lease;
  reading.buffer = memory_.AllocateAsked(dataset_.SizeOf(id));
  reading.ticket =
      store_.Add({.dataset = &dataset_,
                  .id = id,
                  .into = reading.buffer,
                  .done = [this, id](const Result<std::uint32_t>& crc) { OnRead(id, crc); },
                  .keep = true},
                 /*urgent=*/false);
}

void Warmer::OnRead(SampleId id, const Result<std::uint32_t>& crc) {
  if (result_) return;
  const Reading reading = std::move(reading_.extract(id).mapped());
  moved_at_ = alarms_.Now();
  WorkLater();
  if (!crc) {
    leases_.End(dataset_.key(), id, reading.lease, wire::LeaseEvent::kFailed);
    OnFailed(id, crc.error());
    return;
  }
  has_read_ = true;
  failures_in_a_row_ = 0;
  refusals_in_a_row_ = 0;
  Putting& put = putting_[id];
  put = {.crc = *crc, .buffer = reading.buffer};
  if (node_.connected()) SendPut(id, put, reading.lease);
}

// Samples that are missing or have changed may lie side by side; a store that refuses, or is gone,
// has none for the rest, and one of which nothing was read yet may be another than is thought.
void Warmer::OnFailed(SampleId id, const Status& why) {
  if (first_failure_.ok()) first_failure_ = why;
  const bool of_sample = why.code() == Code::kNotFound || why.code() == Code::kConflict ||
                         why.code() == Code::kDataLoss;
  ++failures_in_a_row_;
  if (!of_sample) ++refusals_in_a_row_;
  Ended(id, counts_.failed);
  if (refusals_in_a_row_ >= options_.failures_max) return Stop(Unreadable("last", why));
  const bool too_many = counts_.failed > counts_.tolerated() || !has_read_;
  if (failures_in_a_row_ >= options_.failures_max && too_many)
    Stop(Unreadable("first", first_failure_));
}

void Warmer::SendPut(SampleId id, Putting& put, wire::LeaseId lease) {
  leases_.Spend(dataset_.key(), id, lease);
  put.sent = true;
  node_.Put({.dataset = dataset_.key(), .item = {.id = id}, .lease = lease, .crc = put.crc},
            put.buffer);
}

void Warmer::OnStored(const wire::StoreReply& reply) {
  heard_at_ = alarms_.Now();
  const auto put = putting_.find(reply.id);
  if (reply.dataset != dataset_.key() || put == putting_.end() || !put->second.sent) return;
  putting_.erase(put);
  if (reply.accepted) counts_.read_bytes += dataset_.SizeOf(reply.id);
  Ended(reply.id, reply.accepted ? counts_.read : counts_.no_room);
}

void Warmer::Ended(SampleId id, std::uint64_t& count) {
  ++count;
  in_flight_ -= dataset_.SizeOf(id);
  unknown_ = false;
  moved_at_ = alarms_.Now();
  WorkLater();
}

// --- Time ----------------------------------------------------------------------------------------

void Warmer::RenewLeasesLater() {
  if (renewal_ != 0 || leases_.empty()) return;
  renewal_ = alarms_.After(options_.lease_renewal, [this] {
    renewal_ = 0;
    leases_.Renew();
    RenewLeasesLater();
  });
}

void Warmer::Watch() {
  if (result_) return;
  const MonotonicTime now = alarms_.Now();
  const bool owed =
      node_.connected() && (!asks_.empty() || std::ranges::any_of(putting_, [](const auto& put) {
        return put.second.sent;
      }));
  // A large sample takes its time, in either direction.
  const NodeTraffic traffic = node_.traffic();
  if (!owed || std::exchange(traffic_, traffic) != traffic) heard_at_ = now;
  if (store_.running() > 0) moved_at_ = now;
  if (now - moved_at_ >= options_.stall) return Stop(Stalled());
  if (now - heard_at_ >= options_.silence)
    node_.Drop(Status(Code::kDeadlineExceeded, "the node left a warm-up unanswered for too long"));
  alarms_.After(kWatchEvery, [this] { Watch(); });
}

Status Warmer::Stalled() const {
  const std::string_view why =
      !node_.connected() ? "this machine's node cannot be reached"
      : unknown_         ? "this machine's node does not serve it, or not to this namespace"
                         : "this machine's node takes no more samples of it";
  return {Code::kUnavailable, fmt::format("warming {} stands still: {}", dataset_.name(), why)};
}

Status Warmer::Outcome() const {
  const bool all = counts_.failed > 0 && counts_.failed == counts_.samples;
  return all || counts_.failed > counts_.tolerated() ? Unreadable("first", first_failure_)
                                                     : OkStatus();
}

Status Warmer::Unreadable(std::string_view which, const Status& why) const {
  return Status(why).WithContext(fmt::format("{} of {} samples of {} could not be read, {}",
                                             counts_.failed, counts_.samples, dataset_.name(),
                                             which));
}

}  // namespace optcache::sidecar
