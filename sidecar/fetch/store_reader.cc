// A read is handed to the store with the buffers of its samples as destination; on the store's
// thread each sample is compared with the manifest's digest, if there is one, and its end is posted
// to the loop. Invariants: a sample ends once; it is read twice at most; its buffer is let go on
// the loop's thread.

#include "sidecar/fetch/store_reader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "base/utf8.h"
#include "dataset/digest.h"
#include "storage/sample_read.h"

namespace optcache::sidecar {
namespace {

// What a store may take that sends a little now and then. One that sends nothing is given up when
// the dataset's patience ends (retrying_store.h).
constexpr auto kLongestRead = std::chrono::hours(24);
constexpr std::size_t kMaxCauseBytes = 512;  // docs/formats/wire.md

wire::StoreState StateOf(storage::StoreHealth::State state) {
  switch (state) {
    case storage::StoreHealth::State::kUntried:
      return wire::StoreState::kUntried;
    case storage::StoreHealth::State::kAnswers:
      return wire::StoreState::kAnswers;
    case storage::StoreHealth::State::kSilent:
      return wire::StoreState::kSilent;
  }
  return wire::StoreState::kUntried;
}

}  // namespace

// Made and dies on the loop's thread, where its buffer belongs; between, a thread of the store has
// it. Shared, because a read that is refused leaves it with both the caller and the callback.
struct StoreReader::Pending {
  const dataset::Manifest& manifest() const { return entry.dataset.manifest(); }

  Entry& entry;
  SampleId id;
  BufferRef into;
  OnWait on_wait;
  Done done;
  bool keep = false;
  bool again = false;     // it is the second read: the first brought other bytes
  unsigned attempts = 0;  // of both
};

void StoreReader::Read(const DatasetPort& dataset, Part part, OnWait on_wait) {
  std::vector<Part> parts;
  parts.push_back(std::move(part));
  ReadTogether(dataset, std::move(parts), std::move(on_wait));
}

void StoreReader::ReadTogether(const DatasetPort& dataset, std::vector<Part> parts,
                               OnWait on_wait) {
  Entry& entry = datasets_.at(&dataset);
  const dataset::Manifest& manifest = entry.dataset.manifest();
  const storage::SampleRange first = storage::RangeOf(manifest, parts.front().id);
  storage::Destination destination;
  destination.set_traffic(entry.traffic);
  auto reads = std::make_shared<Together>();
  const bool kept = std::ranges::all_of(parts, &Part::keep);
  for (Part& part : parts) {
    const storage::SampleRange range = storage::RangeOf(manifest, part.id);
    destination.Skip(range.begin - first.begin - destination.size());
    storage::LayOut(manifest, part.id, part.into->bytes(), destination);
    reads->push_back(std::make_shared<Pending>(Pending{.entry = entry,
                                                       .id = part.id,
                                                       .into = std::move(part.into),
                                                       .on_wait = on_wait,
                                                       .done = std::move(part.done),
                                                       .keep = part.keep}));
  }
  if (!storage::NeedsRead(manifest, first)) return OnRead(std::move(reads), {});
  storage::ReadRequest request =
      storage::RequestFor(manifest, first.object, first.begin, std::move(destination),
                          Deadline::After(clock_, kLongestRead));
  request.kept = kept;
  Start(std::move(reads), std::move(request));
}

// One read for all of `reads`. On the loop's thread, or on one of the store.
void StoreReader::Start(std::shared_ptr<Together> reads, storage::ReadRequest request) {
  storage::ObjectStore& store = reads->front()->entry.dataset.store();
  if (const OnWait& on_wait = reads->front()->on_wait) {
    request.on_wait = [this, on_wait](bool waits) {
      loop_.Post([on_wait, waits] { on_wait(waits); });
    };
  }
  const Status accepted =
      store.Read(std::move(request), [this, reads](const storage::ReadOutcome& outcome) mutable {
        OnRead(std::move(reads), outcome);
      });
  if (!accepted.ok()) OnRead(std::move(reads), {.status = accepted});
}

// A sample alone: others that were read with it may be right.
void StoreReader::ReadAgain(std::shared_ptr<Pending> read) {
  const storage::SampleRange range = storage::RangeOf(read->manifest(), read->id);
  storage::Destination destination;
  destination.set_traffic(read->entry.traffic);
  storage::LayOut(read->manifest(), read->id, read->into->bytes(), destination);
  storage::ReadRequest request =
      storage::RequestFor(read->manifest(), range.object, range.begin, std::move(destination),
                          Deadline::After(clock_, kLongestRead));
  request.fresh = true;
  request.kept = read->keep;
  read->again = true;
  auto alone = std::make_shared<Together>();
  alone->push_back(std::move(read));  // all of it: the last reference must die on the loop's thread
  Start(std::move(alone), std::move(request));
}

std::vector<std::string> StoreReader::Waits() const {
  std::vector<std::string> all;
  for (const auto& [_, entry] : datasets_) {
    const ServedDataset& dataset = entry.dataset;
    const storage::StoreWaits waits = dataset.store().Waits();
    if (waits.requests == 0) continue;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(waits.longest);
    all.push_back(fmt::format("the store of {}, for {} s by {} reads: {}", dataset.name(),
                              seconds.count(), waits.requests,
                              CutText(waits.cause, kMaxCauseBytes)));
  }
  return all;
}

std::vector<wire::StoreHealth> StoreReader::Health() const {
  std::vector<wire::StoreHealth> all;
  all.reserve(datasets_.size());
  for (const auto& [_, entry] : datasets_) {
    storage::StoreHealth health = entry.dataset.store().Health();
    const auto silent = std::chrono::duration_cast<std::chrono::milliseconds>(health.silent_for);
    wire::StoreHealth& told = all.emplace_back(
        wire::StoreHealth{.dataset = entry.dataset.key(),
                          .state = StateOf(health.state),
                          .silent_ms = static_cast<std::uint64_t>(silent.count()),
                          .cause = CutText(std::move(health.cause), kMaxCauseBytes)});
    const bool changed = !entry.changed.empty() && clock_.Now() - entry.changed_at < kChangedFor;
    if (!changed || told.state == wire::StoreState::kSilent) continue;
    told.state = wire::StoreState::kChanged;
    told.cause = CutText(entry.changed, kMaxCauseBytes);
  }
  return all;
}

std::vector<StoreUse> StoreReader::Uses() const {
  std::vector<StoreUse> all;
  all.reserve(datasets_.size());
  for (const auto& [_, entry] : datasets_) {
    const storage::RateUse use = entry.dataset.store().Rates();
    all.push_back(
        {.dataset = entry.dataset.key(),
         .most = {.requests = use.most.requests_per_second, .bytes = use.most.bytes_per_second},
         .requests = use.requests,
         .bytes = use.bytes,
         .held_by_requests = use.held_by_requests,
         .held_by_bytes = use.held_by_bytes});
  }
  return all;
}

void StoreReader::SetRates(wire::DatasetKey dataset, const StoreRate& rates) {
  for (const auto& [_, entry] : datasets_) {
    if (entry.dataset.key() != dataset) continue;
    entry.dataset.store().SetRates(
        {.requests_per_second = rates.requests, .bytes_per_second = rates.bytes});
  }
}

void StoreReader::VisitCounters(const CounterVisitor& visitor) const {
  for (const auto& [_, entry] : datasets_) {
    const MetricLabels labels = {{"dataset", entry.dataset.name()}};
    visitor(MetricKind::kCounter, "optcache_store_requests_total", labels,
            static_cast<double>(entry.traffic->requests));
    visitor(MetricKind::kCounter, "optcache_store_received_bytes_total", labels,
            static_cast<double>(entry.traffic->arrived));
    const storage::StoreRates rates = entry.dataset.store().Rates().in_force;
    if (rates.requests_per_second > 0)
      visitor(MetricKind::kGauge, "optcache_store_share_requests", labels,
              rates.requests_per_second);
    if (rates.bytes_per_second > 0)
      visitor(MetricKind::kGauge, "optcache_store_share_bytes", labels, rates.bytes_per_second);
    if (!entry.dataset.manifest().has_digests()) continue;
    visitor(MetricKind::kCounter, "optcache_store_digest_mismatches_total", labels,
            static_cast<double>(entry.mismatches));
  }
}

// On a thread of the store, or, where nothing was read, on the loop's.
void StoreReader::OnRead(std::shared_ptr<Together> reads, const storage::ReadOutcome& outcome) {
  for (std::shared_ptr<Pending>& read : *reads)
    OnSample(std::move(read), outcome);
}

void StoreReader::OnSample(std::shared_ptr<Pending> read, const storage::ReadOutcome& outcome) {
  read->attempts += outcome.attempts;
  if (!outcome.status.ok()) return End(std::move(read), Error(outcome.status));
  const ByteSpan bytes = read->into->bytes();
  const auto digest = read->manifest().SampleDigest(read->id);
  if (!digest || dataset::Sha256Of(bytes) == *digest) return End(std::move(read), Crc32c(bytes));
  ++read->entry.mismatches;
  const bool was_read =
      storage::NeedsRead(read->manifest(), storage::RangeOf(read->manifest(), read->id));
  const bool is_last = read->again || !was_read;
  Status mismatch = LogMismatch(*read, is_last);
  if (!is_last) return ReadAgain(std::move(read));
  End(std::move(read), Error(std::move(mismatch)));
}

void StoreReader::NoteChange(const Pending& read, MonotonicTime now) {
  const dataset::Manifest& manifest = read.manifest();
  read.entry.changed = manifest.ObjectAt(storage::RangeOf(manifest, read.id).object).path;
  read.entry.changed_at = now;
}

Status StoreReader::LogMismatch(const Pending& read, bool is_last) {
  const dataset::Manifest& manifest = read.manifest();
  const std::string& store = read.entry.dataset.store().name();
  Status mismatch(
      Code::kDataLoss,
      fmt::format(
          "{}: {}: its SHA-256 is not the manifest's{}; {}", store, manifest.NameInSource(read.id),
          read.again ? ", nor was it at a second read" : "",
          is_last ? "the object was changed or is damaged: restore it, or index the dataset again"
                  : "it is read once more"));
  const storage::SampleRange range = storage::RangeOf(manifest, read.id);
  const dataset::Object object = manifest.ObjectAt(range.object);
  (is_last ? refused_ : differs_)
      .Tell({.store = store,
             .object = object.path,
             .begin = range.begin,
             .end = range.end,
             .attempt = read.attempts,
             .status = mismatch});
  return mismatch;
}

void StoreReader::End(std::shared_ptr<Pending> read, Result<std::uint32_t> crc) {
  loop_.Post([this, read = std::move(read), crc = std::move(crc)]() mutable {
    if (!crc && crc.error().code() == Code::kConflict) NoteChange(*read, clock_.Now());
    const Done done = std::move(read->done);
    read.reset();
    done(std::move(crc));
  });
}

}  // namespace optcache::sidecar
