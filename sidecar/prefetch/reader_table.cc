// Checks what training processes announce, gets the orders of their passes, and keeps the node
// informed.
//
// WantOrder asks for one order at a time for each rank, on the replayer's thread. The answer names
// the span that it was made for, and OnOrder drops it if no pass has that span any more. An order
// counts until it is known to be wrong: by its CRC (VerifyOrder), by a read of another sample, or
// by too many reads that it does not have (OnDrift). The pass is then read as it is asked for, and
// the node is told. Everything that the node is told follows from `readers_`, so OnNodeUp tells it
// again after each reconnect.

#include "sidecar/prefetch/reader_table.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "sampler/id_list.h"
#include "sampler/recipe_text.h"
#include "sidecar/ports/stream_name.h"
#include "sidecar/prefetch/name_claims.h"
#include "wire/stream_id.h"

namespace optcache::sidecar {

ReaderTable::ReaderTable(NodePort& node, OrderPort& orders, Alarms& alarms, ReaderOptions options,
                         std::function<void()> on_work)
    : node_(node),
      orders_(orders),
      alarms_(alarms),
      options_(std::move(options)),
      on_work_(std::move(on_work)) {}

// --- Attaching --------------------------------------------------------------------------------

Result<Attachment> ReaderTable::Check(const AttachRequest& request) const {
  const DatasetPort* dataset = request.dataset;
  if (request.known) RETURN_IF_ERROR(sampler::Validate(request.recipe));
  const sampler::Recipe& recipe = request.recipe;
  if (request.rank >= recipe.world) {
    return Error(Code::kInvalidArgument,
                 fmt::format("loader '{}': rank {} of a world of {}: ranks count from 0",
                             request.loader, request.rank, recipe.world));
  }
  if (request.known && !recipe.subset.empty() &&
      sampler::SamplesNeeded(recipe) > dataset->samples()) {
    return Error(Code::kInvalidArgument,
                 fmt::format("loader '{}': the sampler's subset reaches to sample {}, dataset '{}' "
                             "has {}; attach a loader over this dataset",
                             request.loader, sampler::SamplesNeeded(recipe), dataset->name(),
                             dataset->samples()));
  }
  if (request.known && recipe.subset.empty() && recipe.size != dataset->samples()) {
    return Error(Code::kInvalidArgument,
                 fmt::format("loader '{}': the sampler is over {} samples, dataset '{}' has {}; "
                             "attach a loader over the whole dataset",
                             request.loader, recipe.size, dataset->name(), dataset->samples()));
  }
  Attachment attachment{
      .dataset = dataset,
      .dataset_name = QualifiedDataset(dataset->name()),
      .incarnation = request.incarnation != 0 ? request.incarnation : options_.incarnation,
      .recipe = recipe,
      .rank = request.rank,
      .known = request.known,
      .traced = request.traced,
      .behind = request.behind,
      .pass_reads = request.pass_reads,
      .job = request.job,
      .process = request.process};
  const std::string& owner = request.owner.empty() ? options_.owner : request.owner;
  attachment.asked_name =
      StreamName(options_.name_space, attachment.dataset_name, owner, request.loader);
  attachment.stream_name = options_.several_jobs ? FreeName(attachment) : attachment.asked_name;
  attachment.stream = wire::StreamIdOf(attachment.stream_name, attachment.incarnation);
  return attachment;
}

std::string ReaderTable::FreeName(const Attachment& newcomer) const {
  const auto claim_of = [](const Attachment& attachment) {
    return NameClaim{.asked = attachment.asked_name,
                     .name = attachment.stream_name,
                     .job = attachment.job,
                     .process = attachment.process,
                     .world = attachment.recipe.world,
                     .rank = attachment.rank};
  };
  std::vector<NameClaim> others;
  for (const auto& [id, reader] : readers_) {
    const Attachment& theirs = reader.attachment();
    if (!reader.ended() && theirs.incarnation == newcomer.incarnation)
      others.push_back(claim_of(theirs));
  }
  std::string name = NameFor(claim_of(newcomer), others);
  if (name != newcomer.asked_name) {
    Log(LogLevel::kInfo, "another job reads by that name, this one gets its own",
        {{"asked", newcomer.asked_name}, {"stream", name}, {"process", newcomer.process}});
  }
  return name;
}

// Ranks of one stream share one order: a rank with another sampler reads other samples than meant.
Status ReaderTable::CheckAgainstOthers(const Attachment& attachment) const {
  for (const auto& [id, other] : readers_) {
    const Attachment& theirs = other.attachment();
    if (other.ended() || theirs.stream != attachment.stream || theirs.rank == attachment.rank) {
      continue;
    }
    if (theirs.recipe == attachment.recipe && theirs.known == attachment.known) continue;
    const std::string difference =
        theirs.known == attachment.known
            ? sampler::FirstDifference(attachment.recipe, theirs.recipe)
            : fmt::format("order known: {} and {}", attachment.known, theirs.known);
    return {
        Code::kInvalidArgument,
        fmt::format(
            "loader '{}': ranks {} and {} differ in {}: all ranks of a loader need the "
            "same sampler{}",
            attachment.stream_name, attachment.rank, theirs.rank, difference,
            options_.several_jobs ? "; if these are two jobs, give each a name of its own" : "")};
  }
  return OkStatus();
}

Result<ReaderId> ReaderTable::Attach(ClientId client, const AttachRequest& request) {
  ASSIGN_OR_RETURN(Attachment attachment, Check(request));
  RETURN_IF_ERROR(CheckAgainstOthers(attachment));
  ReaderId id = Find(attachment.stream, attachment.rank);
  if (id == 0) {
    if (readers_.size() >= kReadersMax) ForgetEnded();
    if (readers_.size() >= kReadersMax) {
      return Error(
          Code::kResourceExhausted,
          fmt::format("{} loaders are attached to this sidecar, more than it takes; detach "
                      "those that are done",
                      readers_.size()));
    }
    id = ++last_id_;
  }
  RankReader& reader = Open(id, std::move(attachment), client);
  reader.ExpectPasses(request.passes, request.passes_from);
  Log(LogLevel::kInfo, "loader attached",
      {{"stream", reader.attachment().stream_name},
       {"incarnation", reader.attachment().incarnation},
       {"rank", reader.attachment().rank},
       {"world", reader.attachment().recipe.world},
       {"sampler", sampler::KindName(reader.attachment().recipe.kind)}});
  SendAttach(reader);
  ReportLater();
  return id;
}

void ReaderTable::SendAttach(const RankReader& reader) {
  node_.Send(0, reader.AttachMessage());
  if (const auto order = reader.OrderMessage()) node_.Send(0, *order);
  node_.Send(0, reader.PassEndMessage());
  for (const PassNumber pass : reader.TracedPasses())
    SendTrace(reader, pass);
}

// So that the cache is planned by it.
void ReaderTable::SendTrace(const RankReader& reader, PassNumber pass) {
  const auto ids = reader.Trace(pass);
  if (ids == nullptr || !node_.connected()) return;
  const Attachment& attachment = reader.attachment();
  const std::uint32_t bits = sampler::BitsFor(attachment.dataset->samples());
  if (sampler::PackedBytes(ids->size(), bits) > sampler::kMaxRankListBytes ||
      ids->size() > sampler::MaxListIds(attachment.dataset->samples())) {
    Log(LogLevel::kWarning, "a list of ids is too long, nothing is planned by it",
        {{"stream", attachment.stream_name}, {"pass", pass}, {"ids", ids->size()}});
    return;
  }
  // Of as many ids as fill whole bytes.
  const std::size_t ids_in_part = wire::kMaxPartBytes * 8 / bits / 8 * 8;
  for (std::size_t first = 0; first < ids->size(); first += ids_in_part) {
    const std::string packed = sampler::PackIds(
        std::span(*ids).subspan(first, std::min(ids_in_part, ids->size() - first)), bits);
    const ByteSpan bytes = AsBytes(packed);
    node_.Send(0, wire::StreamTrace{.stream = attachment.stream,
                                    .rank = attachment.rank,
                                    .pass = pass,
                                    .bits = static_cast<std::uint8_t>(bits),
                                    .length = ids->size(),
                                    .offset = sampler::PackedBytes(first, bits),
                                    .packed = {bytes.begin(), bytes.end()}});
  }
}

RankReader& ReaderTable::Open(ReaderId id, Attachment attachment, ClientId client) {
  const auto found = readers_.find(id);
  if (found == readers_.end()) {
    return readers_.emplace(id, RankReader(std::move(attachment), client)).first->second;
  }
  found->second.Reopen(std::move(attachment), client);
  return found->second;
}

// But for those that an order is still replayed for, so that those are bounded, too.
void ReaderTable::ForgetEnded() {
  std::erase_if(readers_, [this](const auto& entry) {
    return entry.second.ended() && !replaying_.contains(entry.first);
  });
}

void ReaderTable::Detach(ClientId client, ReaderId reader) {
  RankReader* found = Find(reader);
  if (found != nullptr && found->owner() == client) End(*found);
}

void ReaderTable::OnClientGone(ClientId client) {
  for (auto& [id, reader] : readers_) {
    if (reader.owner() == client) End(reader);
  }
}

void ReaderTable::EndAll() {
  for (auto& [id, reader] : readers_)
    End(reader);
}

void ReaderTable::End(RankReader& reader) {
  if (reader.ended()) return;
  reader.End();
  Report(reader);
  on_work_();
}

RankReader* ReaderTable::Find(ReaderId reader) {
  const auto found = readers_.find(reader);
  return found == readers_.end() ? nullptr : &found->second;
}

ReaderId ReaderTable::Find(StreamId stream, Rank rank) const {
  for (const auto& [id, reader] : readers_) {
    if (reader.attachment().stream == stream && reader.attachment().rank == rank) return id;
  }
  return 0;
}

// --- Passes and their orders ------------------------------------------------------------------

Status ReaderTable::Begin(ReaderId reader, const PassSpan& span, std::optional<std::uint32_t> crc) {
  RankReader* found = Find(reader);
  if (found == nullptr || found->ended()) {
    return {Code::kNotFound, "a pass was announced for a loader that is not attached; attach it"};
  }
  const Attachment& attachment = found->attachment();
  const std::uint64_t length =
      attachment.known ? sampler::RankLength(attachment.recipe) : kPassLengthMax;
  if (span.begin > span.end || span.end > length) {
    return {Code::kInvalidArgument,
            fmt::format("loader '{}': a pass from {} to {} does not lie in a rank's list of {}",
                        attachment.stream_name, span.begin, span.end, length)};
  }
  if (found->current() != nullptr) Report(*found);  // how far the pass before came
  found->Begin(span, crc);
  ++passes_;
  if (found->current()->order() != nullptr) {
    VerifyOrder(*found);
  } else {
    WantOrder(reader);
  }
  node_.Send(0, found->PassEndMessage());
  Report(*found);
  on_work_();
  return OkStatus();
}

Status ReaderTable::TakeTrace(ReaderId reader, PassNumber pass, std::uint64_t first,
                              std::uint64_t length, std::span<const SampleId> ids) {
  RankReader* const found = Find(reader);
  if (found == nullptr || found->ended()) {
    return {Code::kNotFound, "a list came for a loader that is not attached; attach it"};
  }
  const SampleId samples = found->attachment().dataset->samples();
  const auto unknown = std::ranges::find_if(ids, [=](SampleId id) { return id >= samples; });
  if (unknown != ids.end()) {
    return {Code::kInvalidArgument,
            fmt::format("loader '{}': the list of pass {} names sample {}, there are {}",
                        found->attachment().stream_name, pass, *unknown, samples)};
  }
  RETURN_IF_ERROR(found->TakeTrace(pass, first, length, ids));
  if (length > 0) SendTrace(*found, pass);
  WantOrder(reader);
  on_work_();
  return OkStatus();
}

void ReaderTable::Predict() {
  for (auto& [id, reader] : readers_) {
    if (reader.Predict(options_.predict)) WantOrder(id);
  }
}

// One order at a time for each reader: of passes that begin faster than they can be replayed, those
// between are left out.
void ReaderTable::WantOrder(ReaderId reader) {
  const RankReader* found = Find(reader);
  const Pass* pass = found == nullptr ? nullptr : found->WithoutOrder();
  if (pass == nullptr || !replaying_.insert(reader).second) return;
  const Attachment& attachment = found->attachment();
  const PassSpan span = pass->span();
  orders_.Replay({.trace = found->Trace(span.pass),
                  .recipe = attachment.recipe,
                  .epoch = span.epoch,
                  .rank = attachment.rank,
                  .begin = span.begin,
                  .end = span.end},
                 [this, reader, span](Result<std::shared_ptr<const RankPass>> order) {
                   replaying_.erase(reader);
                   OnOrder(reader, span, std::move(order));
                   WantOrder(reader);
                 });
}

void ReaderTable::OnOrder(ReaderId reader, const PassSpan& span,
                          Result<std::shared_ptr<const RankPass>> order) {
  RankReader* found = Find(reader);
  Pass* pass = found == nullptr ? nullptr : found->Find(span);
  if (pass == nullptr) return;
  if (!order) {
    OnDrift(reader, *pass, order.error().message());
    return;
  }
  if ((*order)->ids.size() < span.end) {
    OnDrift(reader, *pass,
            fmt::format("the replayed order has only {} samples, the pass reads up to {}",
                        (*order)->ids.size(), span.end));
    return;
  }
  pass->SetOrder(std::move(*order));
  if (pass == found->current()) VerifyOrder(*found);
  on_work_();
}

void ReaderTable::VerifyOrder(RankReader& reader) {
  const std::optional<std::string> wrong = reader.Verify();
  if (!wrong) return;
  ++unknown_orders_;
  Log(LogLevel::kWarning, "order unknown in this pass, samples are read as they are asked for",
      {{"stream", reader.attachment().stream_name},
       {"pass", reader.current()->span().pass},
       {"reason", *wrong}});
  Report(reader);
}

void ReaderTable::OnDrift(ReaderId reader, Pass& pass, const std::string& what) {
  if (!pass.trusted()) return;
  pass.Distrust();
  ++unknown_orders_;
  RankReader& found = readers_.at(reader);
  Log(LogLevel::kWarning, "order unknown in this pass, samples are read as they are asked for",
      {{"stream", found.attachment().stream_name}, {"pass", pass.span().pass}, {"reason", what}});
  Report(found);
}

// --- Telling the node -------------------------------------------------------------------------

void ReaderTable::OnNodeUp() {
  for (const auto& [id, reader] : readers_) {
    if (reader.ended()) continue;
    SendAttach(reader);
    Report(reader);
  }
}

void ReaderTable::Report(const RankReader& reader) {
  if (reader.current() == nullptr && !reader.ended()) return;
  if (reader.current() != nullptr && reader.current()->went_on())
    node_.Send(0, reader.PassEndMessage());
  node_.Send(0, reader.ProgressMessage());
}

void ReaderTable::ReportLater() {
  if (std::exchange(reporting_, true)) return;
  alarms_.After(options_.report_every, [this] {
    reporting_ = false;
    bool reading = false;
    for (const auto& [id, reader] : readers_) {
      if (reader.ended()) continue;
      Report(reader);
      reading = true;
    }
    if (reading) ReportLater();
  });
}

void ReaderTable::VisitCounters(const CounterVisitor& visitor) const {
  std::uint64_t attached = 0;
  ByteCount staged = 0;
  for (const auto& [id, reader] : readers_) {
    if (reader.ended()) continue;
    ++attached;
    if (reader.current() != nullptr) staged += reader.current()->staged_arena_bytes();
    if (reader.next() != nullptr) staged += reader.next()->staged_arena_bytes();
  }
  visitor(MetricKind::kGauge, "optcache_loaders_attached", {}, static_cast<double>(attached));
  visitor(MetricKind::kGauge, "optcache_arena_bytes", {{"state", "staged"}},
          static_cast<double>(staged));
  visitor(MetricKind::kCounter, "optcache_passes_total", {}, static_cast<double>(passes_));
  visitor(MetricKind::kCounter, "optcache_unknown_orders_total", {},
          static_cast<double>(unknown_orders_));
}

}  // namespace optcache::sidecar
