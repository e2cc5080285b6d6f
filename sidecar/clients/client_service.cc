// Translates between the messages of the hand-over socket and the core, which decides.
//
//   channel ─► OnOpen, OnAttach, OnPass, OnGet, ... ─► ReaderTable and BatchService, or
//   ComputedCache BatchService ─► Reply, Refuse    ComputedCache ─► Value, Compute ─► channel
//
// A handle from kComputedHandles on is one of computed samples, all others are places in the
// registry. Both kinds of readers attach in the same way, each to a ReaderTable of its own. The
// loop watches the channel's descriptor, so every call comes on the loop's thread. After Close the
// channel is null, and late answers go nowhere.

#include "sidecar/clients/client_service.h"

#include <chrono>
#include <cstddef>

#include <fmt/format.h>

#include "base/log.h"
#include "sampler/recipe_text.h"
#include "sidecar/ports/stream_name.h"

namespace optcache::sidecar {
namespace {

constexpr auto kTick = std::chrono::seconds(1);

sampler::Recipe RecipeOf(const handoff::AttachRequest& request) {
  return {.kind = static_cast<sampler::Kind>(request.kind),
          .size = request.size,
          .seed = request.seed,
          .world = request.world,
          .shuffle = request.shuffle,
          .drop_last = request.drop_last,
          .modern_randperm = request.modern_randperm,
          .base_seed = static_cast<sampler::BaseSeed>(request.base_seed),
          .tail_permutation = request.tail_permutation};
}

std::optional<PassNumber> PassesFrom(const handoff::AttachRequest& request) {
  if (request.passes_from == handoff::kFromFirstPass) return std::nullopt;
  return request.passes_from;
}

// How the order is announced: by the first fields, by a text, or by lists that will come. What this
// sidecar does not know is an order that is not known.
void TakeOrder(const handoff::AttachRequest& request, AttachRequest& into) {
  into.recipe = RecipeOf(request);
  into.known = request.known;
  if (request.order.empty()) return;
  into.traced = request.order == handoff::kTraceOrder;
  if (into.traced) return;
  Result<sampler::Recipe> recipe = sampler::ParseRecipe(request.order);
  if (recipe && recipe->world == request.world) {
    into.recipe = *std::move(recipe);
    into.known = true;
    return;
  }
  Log(LogLevel::kWarning, "order not known here, samples are read as they are asked for",
      {{"loader", request.loader},
       {"recipe", request.order},
       {"reason", recipe ? "it is for another world" : recipe.error().message()}});
}

Status CheckEnumerators(const handoff::AttachRequest& request) {
  if (request.known && (request.kind > static_cast<std::uint8_t>(sampler::Kind::kTorchRandom) ||
                        request.base_seed > static_cast<std::uint8_t>(sampler::BaseSeed::kNever))) {
    return {Code::kInvalidArgument,
            fmt::format("loader '{}': this sidecar does not know sampler kind {} with base seed "
                        "{}; attach it as one whose order is not known",
                        request.loader, request.kind, request.base_seed)};
  }
  return OkStatus();
}

}  // namespace

std::optional<Slot> SharedArena::Allocate(ByteCount length) {
  const auto slot = arena_.Allocate(length);
  if (!slot) return std::nullopt;
  return Slot{.offset = slot->offset, .length = slot->length};
}

Status ClientService::Open(net::EventLoop& loop, const Clock& clock, const std::string& socket,
                           const std::optional<std::vector<std::uint32_t>>& users,
                           const handoff::Arena& arena, Feeder& feeder) {
  feeder_ = &feeder;
  ASSIGN_OR_RETURN(
      channel_,
      handoff::ChannelServer::Listen(
          {.path = socket, .arena_fd = arena.fd(), .arena_size = arena.size(), .users = users},
          clock, *this));
  watch_ = loop.WatchReadable(channel_->poll_fd(), [this] { channel_->ProcessReady(); });
  tick_ = net::PeriodicTimer(loop, kTick, [this] { channel_->Tick(); });
  return OkStatus();
}

void ClientService::Close() {
  tick_.Cancel();
  watch_.Cancel();
  channel_.reset();
}

void ClientService::VisitCounters(const CounterVisitor& visitor) const {
  if (channel_) channel_->VisitCounters(visitor);
}

// --- From the core ----------------------------------------------------------------------------

void ClientService::Reply(ClientId client, std::uint64_t request, BatchId batch,
                          const std::vector<Served>& samples) {
  if (channel_ == nullptr) return;  // closed, while reads of the store were still ending
  handoff::SamplesReply reply{.batch = batch};
  reply.samples.reserve(samples.size());
  for (const Served& sample : samples) {
    if (!sample.status.ok()) {
      reply.samples.emplace_back(sample.status);
    } else if (const auto& slot = sample.buffer->slot(); slot) {
      reply.samples.emplace_back(handoff::ArenaSample{
          .offset = slot->offset, .length = slot->length, .stand_in = sample.stand_in});
    } else {
      reply.samples.emplace_back(
          handoff::InlineSample{.bytes = sample.buffer->bytes(), .pin = sample.buffer});
    }
  }
  channel_->Reply(client, request, reply);
}

void ClientService::Refuse(ClientId client, std::uint64_t request, const Status& why) {
  if (channel_ == nullptr) return;
  channel_->Fail(client, request, why);
}

void ClientService::Value(ClientId client, std::uint64_t request, Slot slot) {
  if (channel_ == nullptr) return;
  channel_->ReplyValue(client, request, {.offset = slot.offset, .length = slot.length});
}

void ClientService::Compute(ClientId client, std::uint64_t request, ComputedLease lease,
                            ByteCount room) {
  if (channel_ == nullptr) return;
  channel_->ReplyCompute(client, request, {.lease = lease, .room = room});
}

// --- From the channel -------------------------------------------------------------------------

Result<const ServedDataset*> ClientService::Dataset(handoff::DatasetHandle handle) const {
  const auto& places = datasets_.places();
  if (handle == 0 || handle > places.size() || places[handle - 1].dataset == nullptr) {
    return Error(Code::kInvalidArgument,
                 fmt::format("{} is not a dataset's handle; open the dataset first", handle));
  }
  return places[handle - 1].dataset.get();
}

// The client asks again while it is kUnavailable.
Result<handoff::OpenReply> ClientService::Open(const DatasetRegistry::Place& place,
                                               handoff::DatasetHandle handle) const {
  if (place.dataset == nullptr) {
    return Error(Code::kUnavailable,
                 fmt::format("dataset '{}' is not there yet: {}", place.name, place.waits_for));
  }
  const dataset::Manifest& manifest = place.dataset->manifest();
  const HeadspaceMeter* const headspace = feeder_->headspace();
  return handoff::OpenReply{.dataset = handle,
                            .samples = manifest.samples(),
                            .digest = manifest.digest(),
                            .manifest_bytes = manifest.bytes().size(),
                            .name = place.name,
                            .notice = headspace == nullptr ? "" : headspace->Notice(),
                            .manifest_fd = place.dataset->manifest_fd()};
}

Result<handoff::OpenReply> ClientService::OnOpen(handoff::ClientId /*client*/,
                                                 const handoff::OpenRequest& request) {
  ASSIGN_OR_RETURN(const std::size_t at, datasets_.Find(request.name));
  return Open(datasets_.places()[at], static_cast<handoff::DatasetHandle>(at + 1));
}

Result<const DatasetPort*> ClientService::PortOf(handoff::ClientId client,
                                                 handoff::DatasetHandle handle) const {
  if (computed_ != nullptr && handle >= kComputedHandles) return computed_->Dataset(client, handle);
  return Dataset(handle);
}

ReaderTable& ClientService::ReadersOf(handoff::DatasetHandle handle) {
  const bool computed = computed_ != nullptr && handle >= kComputedHandles;
  return computed ? computed_->readers() : feeder_->readers();
}

ReaderTable& ClientService::ReadersOf(StreamId stream, Rank rank) {
  const bool computed = computed_ != nullptr && computed_->readers().Find(stream, rank) != 0;
  return computed ? computed_->readers() : feeder_->readers();
}

Result<handoff::AttachReply> ClientService::OnAttach(handoff::ClientId client,
                                                     const handoff::AttachRequest& request) {
  ASSIGN_OR_RETURN(const DatasetPort* dataset, PortOf(client, request.dataset));
  RETURN_IF_ERROR(CheckEnumerators(request));
  ReaderTable& readers = ReadersOf(request.dataset);
  AttachRequest attach{.dataset = dataset,
                       .owner = request.owner,
                       .loader = request.loader,
                       .incarnation = request.incarnation,
                       .rank = request.rank,
                       .passes = request.passes,
                       .passes_from = PassesFrom(request),
                       .behind = request.behind,
                       .pass_reads = request.pass_reads,
                       .job = request.job,
                       .process = channel_->PeerOf(client).value_or(handoff::Peer{}).pid};
  TakeOrder(request, attach);
  ASSIGN_OR_RETURN(const ReaderId id, readers.Attach(client, attach));
  const RankReader& reader = *readers.Find(id);
  const Attachment& attached = reader.attachment();
  // What tells its name from the one it asked for stands at the end.
  const auto suffix = attached.stream_name.substr(attached.asked_name.size());
  return handoff::AttachReply{.stream = attached.stream,
                              .first_pass = reader.first_pass(),
                              .loader = request.loader + suffix};
}

Status ClientService::OnPass(handoff::ClientId /*client*/, const handoff::PassRequest& request) {
  if (request.length > kPassLengthMax || request.start > kPassLengthMax) {
    return {Code::kInvalidArgument,
            fmt::format("a pass of {} samples from index {} is longer than any can be",
                        request.length, request.start)};
  }
  ReaderTable& readers = ReadersOf(request.stream, request.rank);
  return readers.Begin(readers.Find(request.stream, request.rank),
                       {.pass = request.pass,
                        .epoch = request.epoch,
                        .begin = request.start,
                        .end = request.start + request.length},
                       request.crc);
}

Status ClientService::OnTrace(handoff::ClientId /*client*/, handoff::TraceRequest request) {
  ReaderTable& readers = ReadersOf(request.stream, request.rank);
  return readers.TakeTrace(readers.Find(request.stream, request.rank), request.pass, request.first,
                           request.length, request.ids);
}

void ClientService::OnGet(handoff::ClientId client, handoff::RequestId request,
                          handoff::GetRequest get) {
  if (computed_ != nullptr && get.dataset >= kComputedHandles) {
    GetComputed(client, request, get);
    return;
  }
  const auto dataset = Dataset(get.dataset);
  if (!dataset) {
    channel_->Fail(client, request, dataset.error());
    return;
  }
  BatchRequest batch{
      .request = request, .dataset = *dataset, .ids = std::move(get.ids), .copy_max = kCopyMax};
  if (get.stream != 0) {
    batch.reader = feeder_->readers().Find(get.stream, get.rank);
    batch.pass = get.pass;
    if (get.first != handoff::kNoIndex) batch.first = get.first;
  }
  feeder_->batches().Ask(client, std::move(batch));
}

void ClientService::GetComputed(handoff::ClientId client, handoff::RequestId request,
                                const handoff::GetRequest& get) {
  if (get.ids.size() != 1) {
    channel_->Fail(
        client, request,
        {Code::kInvalidArgument,
         fmt::format("a request for {} computed samples; ask for one at a time", get.ids.size())});
    return;
  }
  ComputedRequest ask{.request = request,
                      .dataset = get.dataset,
                      .stream = get.stream,
                      .rank = get.rank,
                      .pass = get.pass,
                      .index = std::nullopt,
                      .id = get.ids.front()};
  if (get.first != handoff::kNoIndex) ask.index = get.first;
  computed_->Ask(client, ask);
}

Result<handoff::OpenComputedReply> ClientService::OnOpenComputed(
    handoff::ClientId client, const handoff::OpenComputedRequest& request) {
  if (computed_ == nullptr) {
    return Error(Code::kNotFound,
                 "this sidecar has no memory for computed samples: give it some with --computed, "
                 "or the annotation optcache.io/computed");
  }
  ASSIGN_OR_RETURN(
      const ComputedCache::Opened opened,
      computed_->Open(client, request.name, request.what, request.samples, request.max_bytes));
  return handoff::OpenComputedReply{.dataset = opened.dataset,
                                    .first = opened.first,
                                    .capacity = opened.capacity,
                                    .memory_size = computed_memory_->size(),
                                    .memory_fd = computed_memory_->fd()};
}

void ClientService::OnComputedPut(handoff::ClientId client, const handoff::ComputedPut& put) {
  if (computed_ != nullptr) computed_->Put(client, put.lease, put.length, put.offset, put.bytes);
}

Result<handoff::ComputedCounts> ClientService::OnComputedCounts(
    handoff::ClientId client, const handoff::ComputedCountsRequest& request) {
  if (computed_ == nullptr) return Error(Code::kNotFound, "no computed samples are kept here");
  return computed_->CountsOf(client, request.dataset);
}

Result<handoff::ReadCounts> ClientService::OnReadCounts(handoff::ClientId /*client*/,
                                                        const handoff::ReadCountsRequest& request) {
  ASSIGN_OR_RETURN(const ServedDataset* const dataset, Dataset(request.dataset));
  const Delivered delivered = feeder_->batches().DeliveredOf(*dataset);
  const StoreCost asked = feeder_->batches().AskedOf(*dataset);
  const auto part = [&delivered](Source source) {
    const auto at = static_cast<std::size_t>(source);
    return handoff::ReadCounts::Part{.samples = delivered.samples[at],
                                     .bytes = delivered.bytes[at]};
  };
  const auto wait = std::chrono::duration_cast<std::chrono::microseconds>(delivered.wait);
  return handoff::ReadCounts{
      .node = part(Source::kNode),
      .peers = part(Source::kPeer),
      .store = part(Source::kStore),
      .uncached_requests = delivered.uncached.requests,
      .uncached_bytes = delivered.uncached.bytes,
      .store_requests = asked.requests,
      .store_bytes = asked.bytes,
      .wait_us = static_cast<std::uint64_t>(wait.count()),
      .saved_cost = dataset::CostOf(dataset->price(), SavedBy(delivered.uncached, asked))};
}

void ClientService::OnRelease(handoff::ClientId client,
                              const std::vector<handoff::BatchId>& batches) {
  for (const handoff::BatchId batch : batches)
    feeder_->batches().Release(client, batch);
}

void ClientService::OnDetach(handoff::ClientId client, const handoff::DetachRequest& request) {
  ReaderTable& readers = ReadersOf(request.stream, request.rank);
  readers.Detach(client, readers.Find(request.stream, request.rank));
}

void ClientService::OnClientClosed(handoff::ClientId client) {
  feeder_->OnClientGone(client);
  if (computed_ != nullptr) computed_->OnClientGone(client);
}

std::string ClientService::WhyWaiting(handoff::ClientId client, handoff::RequestId request) {
  if (computed_ != nullptr && computed_->Waits(client, request)) {
    return "another process computes this sample";
  }
  return feeder_->batches().WhyWaiting(client, request);
}

}  // namespace optcache::sidecar
