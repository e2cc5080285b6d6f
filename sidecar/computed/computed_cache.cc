// Answers a request with a kept value, with leave to compute it, or lets it wait for the process
// that computes it.
//
//   Ask ─┬─ kept ─► Value
//        ├─ not under way ─► Grant: a lease ─► Put ... ─► Complete: the waiters get it, too
//        └─ another computes it ─► Wait ─┬─ Complete
//                                        ├─ Abandon: the next in line gets the lease
//                                        └─ kWaitMax: TakeOver, this one gets the lease
//
// A sample in `computing` has one lease in force. A Put by an older lease finds none and is
// ignored. What stays is decided by the next use (computed_values.h). The readers here are
// announced like those of samples (ReaderTable), without a node; when one of their orders changes,
// Work computes the next uses again, once for all. `read_` holds the value that each client reads
// until it asks again, so its bytes stay while another takes its place.

#include "sidecar/computed/computed_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"

namespace optcache::sidecar {
namespace {

ReaderOptions PredictingAtOnce(ReaderOptions options) {
  options.predict = PredictWhen::kBegun;
  return options;
}

}  // namespace

ComputedCache::ComputedCache(ArenaPort& memory, OrderPort& orders, Alarms& alarms,
                             ReaderOptions options, ComputedPort& clients)
    : memory_(memory, /*overflow_bytes=*/0, [] {}),
      capacity_(memory.capacity()),
      alarms_(alarms),
      clients_(clients),
      readers_(no_node_, orders, alarms, PredictingAtOnce(std::move(options)),
               [this] { WorkLater(); }) {}

// --- Datasets ---------------------------------------------------------------------------------

Result<ComputedCache::Opened> ComputedCache::Open(ClientId client, const std::string& name,
                                                  const std::string& what, std::uint64_t samples,
                                                  ByteCount max_bytes) {
  if (name.empty() || samples == 0 || samples > kSamplesMax || max_bytes == 0) {
    return Error(Code::kInvalidArgument,
                 fmt::format("computed samples '{}': {} samples in {}; give a name, 1 to {} "
                             "samples and some room",
                             name, samples, FormatBytes(max_bytes), kSamplesMax));
  }
  const std::string full_name = "computed/" + name;
  auto found = std::ranges::find_if(datasets_, [&](const Computed& dataset) {
    return dataset.open && dataset.described.name_ == full_name;
  });
  const bool first = found == datasets_.end() || found->clients.empty();
  if (found != datasets_.end() && (found->what != what || found->described.samples_ != samples)) {
    if (!found->clients.empty()) {
      return Error(Code::kConflict,
                   fmt::format("computed samples '{}' are {} of {} here, these are {} of {}: give "
                               "them another name",
                               name, found->described.samples_, found->what, samples, what));
    }
    Close(*found);  // of a job that has ended
    found = datasets_.end();
  }
  if (found == datasets_.end()) {
    const ByteCount capacity = std::min(max_bytes, Unclaimed());
    Computed* place = FreePlace();
    if (capacity == 0 || place == nullptr) {
      return Error(Code::kResourceExhausted,
                   fmt::format("computed samples '{}': others have taken all of {}; give each a "
                               "part of it",
                               name, FormatBytes(capacity_)));
    }
    place->open = true;
    place->what = what;
    place->described.name_ = full_name;
    place->described.samples_ = static_cast<SampleId>(samples);
    place->uses = std::make_unique<NextUses>(readers_, place->described, alarms_);
    place->values = std::make_unique<ComputedValues>(memory_, capacity);
    found = std::ranges::find_if(datasets_, [=](const Computed& one) { return &one == place; });
    Log(LogLevel::kInfo, "computed samples are kept",
        {{"name", name}, {"samples", samples}, {"capacity", capacity}});
  }
  found->clients.insert(client);
  alarms_.Cancel(std::exchange(found->closes, 0));
  return Opened{
      .dataset = kComputedHandles + static_cast<ComputedHandle>(found - datasets_.begin()),
      .first = first,
      .capacity = found->values->capacity()};
}

ByteCount ComputedCache::Unclaimed() const {
  ByteCount rest = capacity_;
  for (const Computed& dataset : datasets_)
    rest -= dataset.open ? dataset.values->capacity() : 0;
  return rest;
}

ComputedCache::Computed* ComputedCache::FreePlace() {
  for (Computed& dataset : datasets_) {
    if (!dataset.open) return &dataset;
  }
  return datasets_.size() < kDatasetsMax ? &datasets_.emplace_back() : nullptr;
}

void ComputedCache::Close(Computed& dataset) {
  alarms_.Cancel(std::exchange(dataset.closes, 0));
  dataset.open = false;
  dataset.uses.reset();
  dataset.values.reset();
  dataset.hits = dataset.misses = 0;
}

const ComputedCache::Computed* ComputedCache::Find(ClientId client, ComputedHandle handle) const {
  const std::size_t at = handle - kComputedHandles;
  if (handle < kComputedHandles || at >= datasets_.size()) return nullptr;
  const Computed& dataset = datasets_[at];
  return dataset.clients.contains(client) ? &dataset : nullptr;
}

Result<const DatasetPort*> ComputedCache::Dataset(ClientId client, ComputedHandle handle) const {
  const Computed* dataset = Find(client, handle);
  if (dataset == nullptr) {
    return Error(Code::kInvalidArgument,
                 fmt::format("{} is no handle of computed samples; open them first", handle));
  }
  return &dataset->described;
}

Result<handoff::ComputedCounts> ComputedCache::CountsOf(ClientId client,
                                                        ComputedHandle handle) const {
  RETURN_IF_ERROR(internal::StatusOf(Dataset(client, handle)));
  const Computed& dataset = *Find(client, handle);
  return handoff::ComputedCounts{.capacity = dataset.values->capacity(),
                                 .bytes = dataset.values->bytes(),
                                 .values = dataset.values->values(),
                                 .hits = dataset.hits,
                                 .misses = dataset.misses,
                                 .evictions = dataset.values->evictions()};
}

void ComputedCache::OnClientGone(ClientId client) {
  readers_.OnClientGone(client);
  read_.erase(client);
  std::vector<ComputedLease> theirs;
  for (const auto& [id, lease] : leases_) {
    if (lease.client == client) theirs.push_back(id);
  }
  for (Computed& dataset : datasets_) {
    for (auto& [id, computing] : dataset.computing) {
      std::erase_if(computing.waiters, [&](const Waiter& waiter) {
        if (waiter.client != client) return false;
        alarms_.Cancel(waiter.deadline);
        return true;
      });
    }
  }
  for (const ComputedLease lease : theirs)
    Abandon(lease);
  for (Computed& dataset : datasets_) {
    if (dataset.clients.erase(client) == 0 || !dataset.clients.empty()) continue;
    dataset.closes = alarms_.After(kLinger, [this, &dataset] {
      dataset.closes = 0;
      Close(dataset);
    });
  }
}

// --- Asking -----------------------------------------------------------------------------------

Status ComputedCache::Check(ClientId client, const ComputedRequest& request) const {
  ASSIGN_OR_RETURN(const DatasetPort* dataset, Dataset(client, request.dataset));
  if (request.id >= dataset->samples()) {
    return {Code::kInvalidArgument, fmt::format("'{}' has no sample {}: it has {}, counted from 0",
                                                dataset->name(), request.id, dataset->samples())};
  }
  const auto leases = std::ranges::count_if(
      leases_, [client](const auto& entry) { return entry.second.client == client; });
  if (static_cast<std::size_t>(leases) >= kLeasesMax) {
    return {Code::kResourceExhausted,
            fmt::format("{} samples are computed by one thread already; put them first", leases)};
  }
  return OkStatus();
}

void ComputedCache::Ask(ClientId client, const ComputedRequest& request) {
  read_.erase(client);
  if (const Status status = Check(client, request); !status.ok()) {
    clients_.RefuseComputed(client, request.request, status);
    return;
  }
  Computed& dataset = datasets_[request.dataset - kComputedHandles];
  Resolve(dataset, request);
  if (BufferRef value = dataset.values->Find(request.id)) {
    dataset.values->SetNextUse(request.id, dataset.uses->Of(request.id));
    Answer(dataset, client, request.request, std::move(value));
  } else if (dataset.computing.contains(request.id)) {
    Wait(dataset, request.id, client, request.request);
  } else {
    Grant(dataset, request.id, client, request.request);
  }
}

// Finds out which read of the announced order this is. It may be none: that costs the plan, not the
// reader.
void ComputedCache::Resolve(const Computed& dataset, const ComputedRequest& request) {
  const ReaderId id = request.stream == 0 ? 0 : readers_.Find(request.stream, request.rank);
  RankReader* reader = readers_.Find(id);
  Pass* pass = reader == nullptr || reader->ended() ? nullptr : reader->Find(request.pass);
  if (pass == nullptr || reader->attachment().dataset != &dataset.described) return;
  dataset.uses->NoteRead(id);
  std::optional<std::uint64_t> index = request.index;
  if (index && pass->Contains(*index) && !pass->Agrees(*index, request.id)) {
    readers_.OnDrift(id, *pass,
                     fmt::format("rank {} reads computed sample {} at index {}, where another was "
                                 "predicted",
                                 request.rank, request.id, *index));
    return;
  }
  if (!index) index = pass->FindUnasked(request.id);
  if (index) pass->MarkAsked(*index);
}

void ComputedCache::Answer(Computed& dataset, ClientId client, std::uint64_t request,
                           BufferRef value) {
  ++dataset.hits;
  ++hits_;
  const Slot slot = *value->slot();
  read_[client] = std::move(value);
  clients_.Value(client, request, slot);
}

ComputedValues::Ties ComputedCache::TiesOf(const Computed& dataset) const {
  return dataset.uses->steady() ? ComputedValues::Ties::kStay : ComputedValues::Ties::kGiveWay;
}

void ComputedCache::Grant(Computed& dataset, SampleId id, ClientId client, std::uint64_t request) {
  ++dataset.misses;
  ++misses_;
  const ComputedLease lease = ++last_lease_;
  leases_[lease] = {.dataset = &dataset, .id = id, .client = client, .value = nullptr};
  dataset.computing[id].lease = lease;
  clients_.Compute(client, request, lease,
                   dataset.values->RoomFor(dataset.uses->Of(id), TiesOf(dataset)));
}

void ComputedCache::Wait(Computed& dataset, SampleId id, ClientId client, std::uint64_t request) {
  const Alarms::Id deadline = alarms_.After(
      kWaitMax, [this, &dataset, id, client, request] { TakeOver(dataset, id, client, request); });
  dataset.computing.at(id).waiters.push_back(
      {.client = client, .request = request, .deadline = deadline});
}

bool ComputedCache::Waits(ClientId client, std::uint64_t request) const {
  for (const Computed& dataset : datasets_) {
    for (const auto& [id, computing] : dataset.computing) {
      for (const Waiter& waiter : computing.waiters) {
        if (waiter.client == client && waiter.request == request) return true;
      }
    }
  }
  return false;
}

// The client that computes it takes too long, or hangs: one that has waited computes it, too.
void ComputedCache::TakeOver(Computed& dataset, SampleId id, ClientId client,
                             std::uint64_t request) {
  Computing& computing = dataset.computing.at(id);
  std::erase_if(computing.waiters, [&](const Waiter& waiter) {
    return waiter.client == client && waiter.request == request;
  });
  const auto slow = leases_.find(computing.lease);
  if (slow != leases_.end()) DropLease(slow);
  Grant(dataset, id, client, request);
}

// --- Values -----------------------------------------------------------------------------------

void ComputedCache::Put(ClientId client, ComputedLease id, ByteCount length, ByteCount offset,
                        ByteSpan bytes) {
  const auto found = leases_.find(id);
  if (found == leases_.end() || found->second.client != client) return;  // was taken over
  Lease& lease = found->second;
  Computed& dataset = *lease.dataset;
  if (lease.value == nullptr && length > 0 && offset == 0) {
    lease.value = dataset.values->Reserve(length, dataset.uses->Of(lease.id), TiesOf(dataset));
  }
  const bool fits = lease.value != nullptr && lease.value->bytes().size() == length &&
                    offset == lease.received && !bytes.empty() && bytes.size() <= length - offset;
  if (!fits) {
    Abandon(id);
    return;
  }
  std::memcpy(lease.value->bytes().data() + offset, bytes.data(), bytes.size());
  lease.received += bytes.size();
  if (lease.received < length) return;
  Lease whole = std::move(lease);
  leases_.erase(found);
  Complete(std::move(whole));
}

void ComputedCache::Complete(Lease lease) {
  Computed& dataset = *lease.dataset;
  auto computing = dataset.computing.extract(lease.id);
  const BufferRef value = lease.value;
  dataset.values->Keep(lease.id, std::move(lease.value), dataset.uses->Of(lease.id));
  for (const Waiter& waiter : computing.mapped().waiters) {
    alarms_.Cancel(waiter.deadline);
    Answer(dataset, waiter.client, waiter.request, value);
  }
}

// Nothing came of it: the next in line computes it.
void ComputedCache::Abandon(ComputedLease id) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return;
  Computed& dataset = *found->second.dataset;
  const SampleId sample = found->second.id;
  DropLease(found);
  Computing& computing = dataset.computing.at(sample);
  if (computing.waiters.empty()) {
    dataset.computing.erase(sample);
    return;
  }
  const Waiter next = computing.waiters.front();
  computing.waiters.pop_front();
  alarms_.Cancel(next.deadline);
  Grant(dataset, sample, next.client, next.request);
}

void ComputedCache::DropLease(std::map<ComputedLease, Lease>::iterator lease) {
  if (lease->second.value != nullptr) {
    lease->second.dataset->values->GiveBack(std::move(lease->second.value));
  }
  leases_.erase(lease);
}

// --- The orders -------------------------------------------------------------------------------

void ComputedCache::WorkLater() {
  if (std::exchange(work_due_, true)) return;
  alarms_.At(alarms_.Now(), [this] { Work(); });
}

void ComputedCache::Work() {
  work_due_ = false;
  readers_.Predict();
  for (Computed& dataset : datasets_) {
    if (!dataset.open || !dataset.uses->Stale()) continue;
    dataset.uses->Refresh();
    dataset.values->SetNextUses(dataset.uses->OfAll());
  }
}

void ComputedCache::VisitCounters(const CounterVisitor& visitor) const {
  VisitFigures(hits_, misses_, capacity_, memory_.arena_in_use(), visitor);
}

void ComputedCache::VisitNone(const CounterVisitor& visitor) {
  VisitFigures(0, 0, 0, 0, visitor);
}

void ComputedCache::VisitFigures(std::uint64_t hits, std::uint64_t misses, ByteCount capacity,
                                 ByteCount in_use, const CounterVisitor& visitor) {
  const auto reads = [&](const char* result, std::uint64_t count) {
    visitor(MetricKind::kCounter, "optcache_computed_reads_total", {{"result", result}},
            static_cast<double>(count));
  };
  reads("hit", hits);
  reads("miss", misses);
  visitor(MetricKind::kGauge, "optcache_computed_capacity_bytes", {},
          static_cast<double>(capacity));
  visitor(MetricKind::kGauge, "optcache_computed_bytes", {}, static_cast<double>(in_use));
}

}  // namespace optcache::sidecar
