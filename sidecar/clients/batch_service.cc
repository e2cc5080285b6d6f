// Carries each request through three steps: whose reads it is, memory for each sample, the answer.
//
// Resolve ties each sample to a place in the announced order of its rank, if it has one there, and
// takes the staged sample of that place. PlaceInArena finds memory in the arena for the others,
// sample by sample, before those that stand in line. What does not fit stands in `in_line_`: Admit
// serves this line from its front, and gives a request of the overflow all that it still needs or
// nothing. OnEnded counts down `missing`, and the request is answered
// when it is 0. The answered batch stays in `batches_` while its client holds slots of the arena;
// erasing it lets go of them. `waiting_` counts the unanswered ones. A sample knows the batches
// that ask for it (HeldSample::askers), so two requests for one staged sample wait for one fetch. A
// place in the order is marked as asked when it is claimed, as delivered when it is answered, and
// as unasked again when its read fails or its client goes. That keeps a retry on the plan.

#include "sidecar/clients/batch_service.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"

namespace optcache::sidecar {

BatchService::BatchService(ReaderTable& readers, SampleMemory& memory, Fetcher& fetcher,
                           ClientPort& clients, const Alarms& alarms)
    : readers_(readers), memory_(memory), fetcher_(fetcher), clients_(clients), alarms_(alarms) {}

// --- Asking -----------------------------------------------------------------------------------

Status BatchService::Check(ClientId client, const BatchRequest& request) const {
  if (request.ids.empty() || request.ids.size() > kBatchMax) {
    return {Code::kInvalidArgument, fmt::format("a request for {} samples; ask for 1 to {} at once",
                                                request.ids.size(), kBatchMax)};
  }
  ByteCount bytes = 0;
  for (const SampleId id : request.ids) {
    if (id >= request.dataset->samples()) {
      return {Code::kInvalidArgument,
              fmt::format("dataset '{}' has no sample {}: it has {}, counted from 0",
                          request.dataset->name(), id, request.dataset->samples())};
    }
    bytes += request.dataset->SizeOf(id);
  }
  if (request.ids.size() > 1 && bytes > kBatchBytesMax) {
    return {Code::kInvalidArgument,
            fmt::format("a request for {} samples of {} together; ask for fewer, for {} at once",
                        request.ids.size(), FormatBytes(bytes), FormatBytes(kBatchBytesMax))};
  }
  RETURN_IF_ERROR(CheckSize(request));
  std::size_t waiting = 0;
  for (const auto& [id, batch] : batches_) {
    if (batch.client == client && !batch.answered) ++waiting;
  }
  if (waiting >= kWaitingPerClientMax) {
    return {
        Code::kResourceExhausted,
        fmt::format("{} requests of this process wait already; read their answers first", waiting)};
  }
  return OkStatus();
}

// One that neither the arena nor a copy could ever hold is not read. Requests for several are small
// enough.
Status BatchService::CheckSize(const BatchRequest& request) const {
  const ByteCount size = request.dataset->SizeOf(request.ids.front());
  const ByteCount by_copy = std::min(memory_.AloneMax(), request.copy_max);
  if (request.ids.size() > 1 || size <= std::max(memory_.arena_capacity(), by_copy))
    return OkStatus();
  const std::string_view flags = size > request.copy_max ? "--arena" : "--arena or --overflow";
  return {Code::kInvalidArgument,
          fmt::format("sample {} of dataset '{}' has {}: the arena has {} and {} can be sent by "
                      "copy; start the sidecar with {} of at least {}, "
                      "or store smaller samples",
                      request.ids.front(), request.dataset->name(), FormatBytes(size),
                      FormatBytes(memory_.arena_capacity()), FormatBytes(by_copy), flags,
                      FormatBytes(2 * size))};
}

void BatchService::Ask(ClientId client, const BatchRequest& request) {
  if (const Status status = Check(client, request); !status.ok()) {
    clients_.Refuse(client, request.request, status);
    return;
  }
  if (headspace_ != nullptr && AnswerAtOnce(client, request)) return;
  const bool is_behind = fetcher_.IsBehind();  // with what was asked for before
  const BatchId id = ++last_id_;
  Batch& batch = batches_[id];
  batch.client = client;
  batch.tally = &tallies_[request.dataset->name()];
  batch.tally->dataset = request.dataset;
  batch.request = request.request;
  batch.asked_at = alarms_.Now();
  batch.timed = BeginTime(client, request, batch.asked_at);
  std::unordered_map<SampleId, HeldSampleRef> without_order;
  for (std::size_t i = 0; i < request.ids.size(); ++i) {
    Item item = Resolve(request, i, batch.asked_at);
    if (item.reader == 0) {  // the same sample twice is one read
      item.sample = without_order.try_emplace(item.sample->id(), item.sample).first->second;
    }
    item.sample->AskedBy(id);
    if (!item.sample->ended()) ++batch.missing;
    batch.items.push_back(std::move(item));
  }
  ++waiting_;
  const bool in_line = !PlaceInArena(batch);
  if (in_line) in_line_.push_back(id);
  if (batch.missing == 0) {
    Answer(id, batch, std::nullopt);
  } else {
    batch.room_would_help = WouldRoomHelp(in_line, is_behind);
    Admit();
  }
}

// True: the client's time is counted.
bool BatchService::BeginTime(ClientId client, const BatchRequest& request, MonotonicTime now) {
  const RankReader* const reader = request.by_process ? readers_.Find(request.reader) : nullptr;
  if (reader == nullptr) return false;
  const bool is_trainer = reader->owner() == client;
  times_.OnAsk(client, is_trainer ? ClientKind::kTrainer : ClientKind::kWorker, now);
  return true;
}

bool BatchService::WouldRoomHelp(bool in_line, bool is_behind) const {
  RoomFacts facts{.in_line = in_line, .is_behind = is_behind, .fetching = fetcher_.fetching()};
  for (const auto& [id, reader] : readers_.readers())
    facts.staged += reader.staged();
  return sidecar::WouldRoomHelp(facts);
}

BatchService::Item BatchService::Resolve(const BatchRequest& request, std::size_t i,
                                         MonotonicTime now) {
  const SampleId id = request.ids[i];
  RankReader* found = readers_.Find(request.reader);
  Pass* pass = found == nullptr || found->ended() ? nullptr : found->Find(request.pass);
  if (pass == nullptr || found->attachment().dataset != request.dataset) {
    return WithoutOrder(request, id);
  }
  if (request.first) {
    const std::uint64_t index = *request.first + i;
    if (!pass->Contains(index)) return WithoutOrder(request, id);
    if (!pass->Agrees(index, id)) {
      readers_.OnDrift(request.reader, *pass,
                       fmt::format("rank {} reads sample {} at index {}, where {} was predicted",
                                   found->attachment().rank, id, index, pass->order()->ids[index]));
    }
    return Claim(request.reader, *pass, index, id, now);
  }
  if (const auto index = pass->FindUnasked(id))
    return Claim(request.reader, *pass, *index, id, now);
  if (pass->predicted()) {
    ++unpredicted_;
    if (pass->NoteUnpredicted()) {
      readers_.OnDrift(request.reader, *pass,
                       "many samples were asked for that are not, or no longer, due in this pass");
    }
  }
  return WithoutOrder(request, id);
}

BatchService::Item BatchService::Claim(ReaderId reader, Pass& pass, std::uint64_t index,
                                       SampleId id, MonotonicTime now) {
  RankReader& found = *readers_.Find(reader);
  pass.MarkAsked(index);
  found.OnAsked(pass, index, now);
  Item item{
      .sample = pass.Staged(index), .reader = reader, .pass = pass.span().pass, .index = index};
  // What lies in the overflow is one request's alone, see the class comment.
  const bool usable = item.sample != nullptr && item.sample->id() == id &&
                      item.sample->state() != HeldSample::State::kFailed &&
                      (item.sample->in_arena() || item.sample->askers().empty());
  if (!usable) {
    item.sample = std::make_shared<HeldSample>(
        fetcher_, *found.attachment().dataset, found.attachment().stream,
        wire::ReadItem{.pass = item.pass, .position = found.PositionOf(index), .id = id},
        found.DueOf(pass, index));
    if (found.lacks_room()) item.sample->NoteNoRoom();
  }
  return item;
}

BatchService::Item BatchService::WithoutOrder(const BatchRequest& request, SampleId id) {
  return {.sample = std::make_shared<HeldSample>(fetcher_, *request.dataset, StreamId{0},
                                                 wire::ReadItem{.id = id})};
}

// --- Memory -----------------------------------------------------------------------------------

bool BatchService::Place(HeldSample& sample, BufferRef buffer) {
  if (buffer == nullptr) return false;
  sample.Fetch(std::move(buffer), Urgency::kUrgent, [this, &sample] { OnEnded(sample); });
  return true;
}

// False if some have no memory yet.
bool BatchService::PlaceInArena(Batch& batch) {
  bool all = true;
  for (const Item& item : batch.items) {
    if (item.sample->state() != HeldSample::State::kNoMemory) continue;
    if (Place(*item.sample, memory_.AllocateInArena(item.sample->size()))) continue;
    item.sample->NoteNoRoom();
    all = false;
  }
  return all;
}

// The arena first, then the overflow for all the rest, or for nothing.
BatchService::Placed BatchService::PlaceAnywhere(BatchId id, Batch& batch) {
  if (PlaceInArena(batch)) return Placed::kAll;
  ByteCount bytes = 0;
  std::unordered_set<const HeldSample*> counted;
  for (const Item& item : batch.items) {
    const HeldSample& sample = *item.sample;
    if (sample.state() != HeldSample::State::kNoMemory) continue;
    if (counted.insert(&sample).second) bytes += sample.size();
  }
  if (!memory_.Admits(bytes)) {
    if (memory_.MakeRoom(RoomFor::kAsked)) return PlaceAnywhere(id, batch);
    if (memory_.others_ask()) return Placed::kInLine;
    RefuseForWantOfRoom(id, bytes);
    return Placed::kRefused;
  }
  WarnOfOverflow(bytes);
  for (const Item& item : batch.items) {
    if (item.sample->state() != HeldSample::State::kNoMemory) continue;
    Place(*item.sample, memory_.AllocateAsked(item.sample->size()));
  }
  return Placed::kAll;
}

// Waiting would not help: who holds the arena may be the one that asks.
void BatchService::RefuseForWantOfRoom(BatchId id, ByteCount bytes) {
  const auto found = batches_.find(id);
  const Batch& batch = found->second;
  const ClientId client = batch.client;
  const std::uint64_t request = batch.request;
  if (batch.timed) times_.OnAnswer(client, /*holds=*/false, alarms_.Now());
  LetGo(id, batch);
  batches_.erase(found);
  ++failed_;
  clients_.Refuse(
      client, request,
      {Code::kResourceExhausted,
       fmt::format("the arena of {} has no room for {} now, and of --overflow {} no more than {} "
                   "can be sent by copy now: start the sidecar with --overflow of at least twice "
                   "the largest sample, or a larger --arena",
                   FormatBytes(memory_.arena_capacity()), FormatBytes(bytes),
                   FormatBytes(memory_.overflow_capacity()), FormatBytes(memory_.AloneNow()))});
}

void BatchService::Admit() {
  while (!in_line_.empty()) {
    const auto found = batches_.find(in_line_.front());
    if (found != batches_.end() && PlaceAnywhere(found->first, found->second) == Placed::kInLine)
      return;
    in_line_.pop_front();
  }
}

void BatchService::WarnOfOverflow(ByteCount bytes) {
  if (std::exchange(warned_, true)) return;
  Log(LogLevel::kWarning, "the arena is too small: samples are answered by copy",
      {{"arena", FormatBytes(memory_.arena_capacity())},
       {"needed", FormatBytes(memory_.arena_in_use() + bytes)},
       {"do", "start with --arena of at least twice what is needed"}});
}

// --- Answering --------------------------------------------------------------------------------

void BatchService::OnEnded(HeldSample& sample) {
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): Answer changes the list
  const std::vector<BatchId> askers = sample.askers();
  const Ended ended{.source = sample.source(), .had_no_room = sample.had_no_room()};
  for (const BatchId id : askers) {
    Batch& batch = batches_.at(id);
    if (--batch.missing == 0) Answer(id, batch, ended);
  }
}

void BatchService::Answer(BatchId id, Batch& batch, std::optional<Ended> last) {
  batch.answered = true;
  --waiting_;
  ++answered_;
  std::vector<Served> served;
  served.reserve(batch.items.size());
  std::uint64_t hits = 0;
  for (const Item& item : batch.items) {
    item.sample->NoLongerAskedBy(id);
    if (item.sample->source() != Source::kStore) ++hits;
    served.push_back({.status = item.sample->error(), .buffer = item.sample->buffer()});
    if (item.sample->in_arena()) batch.handed_out.push_back(item.sample->buffer());
    Deliver(item, *batch.tally);
  }
  const bool holds = !batch.handed_out.empty();
  const MonotonicTime now = alarms_.Now();
  const Duration waited = now - batch.asked_at;
  batch.tally->delivered.wait += waited;
  if (last) {
    const WaitCause cause = CauseOf(batch.room_would_help, last->had_no_room, last->source);
    batch.tally->waits[static_cast<std::size_t>(cause)] += waited;
  }
  if (batch.timed) times_.OnAnswer(batch.client, holds, now);
  RankReader* reader = readers_.Find(batch.items.front().reader);
  if (reader != nullptr) reader->AddWait(waited);
  if (reader != nullptr && headspace_ != nullptr)
    headspace_->OnAnswer(*reader, served, hits, waited);
  const ClientId client = batch.client;
  const std::uint64_t request = batch.request;
  batch.items.clear();
  if (!holds) batches_.erase(id);
  clients_.Reply(client, request, holds ? id : 0, served);
}

// With samples that are here already, as if they were those that were asked for.
bool BatchService::AnswerAtOnce(ClientId client, const BatchRequest& request) {
  RankReader* const reader = readers_.Find(request.reader);
  const MonotonicTime now = alarms_.Now();
  if (reader == nullptr || !headspace_->OnAsk(*reader, request.ids.size(), now)) return false;
  const BatchId id = ++last_id_;
  Batch& batch = batches_[id];
  batch.client = client;
  batch.answered = true;
  std::vector<Served> served;
  for (std::size_t i = 0; i < request.ids.size(); ++i) {
    const Item item = Resolve(request, i, now);
    if (Pass* const pass = PassOf(item)) {
      pass->MarkDelivered(item.index);
      pass->Unstage(item.index);
    }
    BufferRef buffer = headspace_->Instead(request.dataset->SizeOf(request.ids[i]));
    batch.handed_out.push_back(buffer);
    served.push_back({.status = {}, .buffer = std::move(buffer), .stand_in = true});
  }
  ++answered_;
  headspace_->OnAnswer(*reader, served, 0, Duration::zero());
  clients_.Reply(client, request.request, id, served);
  return true;
}

void BatchService::Deliver(const Item& item, Tally& tally) {
  Pass* pass = PassOf(item);
  if (item.sample->state() == HeldSample::State::kFailed) {
    ++failed_;
    if (pass != nullptr) pass->MarkUnasked(item.index);
    return;
  }
  tally.delivered.Add(item.sample->source(), item.sample->size(),
                      tally.dataset->StoreBytesOf(item.sample->id()));
  if (!item.sample->in_arena()) ++copied_;
  if (pass == nullptr) return;
  pass->MarkDelivered(item.index);
  pass->Unstage(item.index);
}

Pass* BatchService::PassOf(const Item& item) {
  RankReader* reader = readers_.Find(item.reader);
  return reader == nullptr ? nullptr : reader->Find(item.pass);
}

Delivered BatchService::DeliveredOf(const DatasetPort& dataset) const {
  const auto found = tallies_.find(dataset.name());
  return found == tallies_.end() ? Delivered{} : found->second.delivered;
}

StoreCost BatchService::AskedOf(const DatasetPort& dataset) const {
  const StorePort& store = fetcher_.store();
  return {.requests = store.Requests(dataset), .bytes = store.Arrived(dataset)};
}

std::vector<DatasetSaved> BatchService::SavedOfAll() const {
  std::vector<DatasetSaved> all;
  for (const auto& [name, tally] : tallies_) {
    if (!tally.delivered.any()) continue;
    const Saved saved = SavedBy(tally.delivered.uncached, AskedOf(*tally.dataset));
    all.push_back({.dataset = name,
                   .saved = saved,
                   .cost = dataset::CostOf(tally.dataset->price(), saved),
                   .wait = tally.delivered.wait,
                   .key = tally.dataset->key()});
  }
  return all;
}

void BatchService::Release(ClientId client, BatchId batch) {
  const auto found = batches_.find(batch);
  if (found == batches_.end() || found->second.client != client || !found->second.answered) return;
  if (found->second.timed) times_.OnRelease(client, alarms_.Now());
  batches_.erase(found);
}

void BatchService::OnClientGone(ClientId client) {
  times_.OnGone(client, alarms_.Now());
  for (auto it = batches_.begin(); it != batches_.end();) {
    Batch& batch = it->second;
    if (batch.client != client) {
      ++it;
      continue;
    }
    LetGo(it->first, batch);
    it = batches_.erase(it);
  }
}

// Of its samples, as if they had not been asked for.
void BatchService::LetGo(BatchId id, const Batch& batch) {
  if (!batch.answered) --waiting_;
  for (const Item& item : batch.items) {
    item.sample->NoLongerAskedBy(id);
    Pass* pass = PassOf(item);
    if (pass != nullptr) pass->MarkUnasked(item.index);
  }
}

void BatchService::GiveUp() {
  batches_.clear();
  in_line_.clear();
  waiting_ = 0;
}

std::string BatchService::WhyWaiting(ClientId client, std::uint64_t request) const {
  for (const auto& [id, batch] : batches_) {
    if (batch.client != client || batch.request != request || batch.answered) continue;
    std::size_t without_memory = 0;
    for (const Item& item : batch.items) {
      if (item.sample->state() == HeldSample::State::kNoMemory) ++without_memory;
    }
    std::string why = fmt::format(
        "{} of {} samples are not here yet ({} of them wait for memory; {} samples are being "
        "fetched in all, the node is {})",
        batch.missing, batch.items.size(), without_memory, fetcher_.fetching(),
        fetcher_.node_connected() ? "connected" : "not connected");
    for (const std::string& store : fetcher_.store().Waits())
      why += "; waiting for " + store;
    return why;
  }
  return "it is not known";
}

void BatchService::VisitCounters(const CounterVisitor& visitor) const {
  ByteCount handed_out = 0;
  for (const auto& [id, batch] : batches_) {
    for (const BufferRef& buffer : batch.handed_out)
      handed_out += buffer->bytes().size();
  }
  visitor(MetricKind::kGauge, "optcache_arena_bytes", {{"state", "handed_out"}},
          static_cast<double>(handed_out));
  std::uint64_t all = 0;
  std::uint64_t hits = 0;
  for (const auto& [name, tally] : tallies_) {
    const Delivered& delivered = tally.delivered;
    for (std::size_t i = 0; i < kSources; ++i) {
      const MetricLabels labels = {{"source", std::string(kSourceNames[i])}, {"dataset", name}};
      visitor(MetricKind::kCounter, "optcache_client_samples_total", labels,
              static_cast<double>(delivered.samples[i]));
      visitor(MetricKind::kCounter, "optcache_client_sample_bytes_total", labels,
              static_cast<double>(delivered.bytes[i]));
      all += delivered.samples[i];
      if (i != static_cast<std::size_t>(Source::kStore)) hits += delivered.samples[i];
    }
    visitor(MetricKind::kCounter, "optcache_client_wait_seconds_total", {{"dataset", name}},
            ToSeconds(delivered.wait));
    for (std::size_t i = 0; i < kWaitCauses; ++i) {
      visitor(MetricKind::kCounter, "optcache_client_wait_cause_seconds_total",
              {{"cause", std::string(kWaitCauseNames[i])}, {"dataset", name}},
              ToSeconds(tally.waits[i]));
    }
    const Saved saved = SavedBy(delivered.uncached, AskedOf(*tally.dataset));
    visitor(MetricKind::kGauge, "optcache_saved_requests", {{"dataset", name}},
            static_cast<double>(saved.requests));
    visitor(MetricKind::kGauge, "optcache_saved_bytes", {{"dataset", name}},
            static_cast<double>(saved.bytes));
    const std::optional<double> cost = dataset::CostOf(tally.dataset->price(), saved);
    if (cost) visitor(MetricKind::kGauge, "optcache_saved_cost", {{"dataset", name}}, *cost);
  }
  times_.VisitCounters(visitor, alarms_.Now());
  visitor(MetricKind::kGauge, "optcache_observed_hit_ratio", {},
          all == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(all));
  visitor(MetricKind::kCounter, "optcache_client_batches_total", {},
          static_cast<double>(answered_));
  visitor(MetricKind::kGauge, "optcache_client_batches_waiting", {}, static_cast<double>(waiting_));
  visitor(MetricKind::kCounter, "optcache_client_copied_samples_total", {},
          static_cast<double>(copied_));
  visitor(MetricKind::kCounter, "optcache_client_failed_samples_total", {},
          static_cast<double>(failed_));
  visitor(MetricKind::kCounter, "optcache_unpredicted_reads_total", {},
          static_cast<double>(unpredicted_));
}

}  // namespace optcache::sidecar
