#include "sidecar/store_reader.h"

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
  const ServedDataset& dataset;
  SampleId id;
  BufferRef into;
  Done done;
};

void StoreReader::Read(const DatasetPort& dataset, SampleId id, BufferRef into, OnWait on_wait,
                       Done done) {
  std::vector<Part> parts;
  parts.push_back({.id = id, .into = std::move(into), .done = std::move(done)});
  ReadTogether(dataset, std::move(parts), std::move(on_wait));
}

void StoreReader::ReadTogether(const DatasetPort& dataset, std::vector<Part> parts,
                               OnWait on_wait) {
  const ServedDataset& served = *datasets_.at(&dataset);
  const dataset::Manifest& manifest = served.manifest();
  const storage::SampleRange first = storage::RangeOf(manifest, parts.front().id);
  storage::Destination destination;
  auto reads = std::make_shared<Together>();
  for (Part& part : parts) {
    const storage::SampleRange range = storage::RangeOf(manifest, part.id);
    destination.Skip(range.begin - first.begin - destination.size());
    storage::LayOut(manifest, part.id, part.into->bytes(), destination);
    reads->push_back(std::make_shared<Pending>(Pending{.dataset = served,
                                                       .id = part.id,
                                                       .into = std::move(part.into),
                                                       .done = std::move(part.done)}));
  }
  if (!storage::NeedsRead(manifest, first)) return OnRead(std::move(reads), {});
  const Deadline deadline = Deadline::After(clock_, kLongestRead);
  storage::ReadRequest request =
      storage::RequestFor(manifest, first.object, first.begin, std::move(destination), deadline);
  if (on_wait) {
    request.on_wait = [this, on_wait = std::move(on_wait)](bool waits) {
      loop_.Post([on_wait, waits] { on_wait(waits); });
    };
  }
  const Status accepted = served.store().Read(
      std::move(request), [this, reads](const storage::ReadOutcome& outcome) mutable {
        OnRead(std::move(reads), outcome);
      });
  if (!accepted.ok()) OnRead(std::move(reads), {.status = accepted});
}

std::vector<std::string> StoreReader::Waits() const {
  std::vector<std::string> all;
  for (const auto& [_, dataset] : datasets_) {
    const storage::StoreWaits waits = dataset->store().Waits();
    if (waits.requests == 0) continue;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(waits.longest);
    all.push_back(fmt::format("the store of {}, for {} s by {} reads: {}", dataset->name(),
                              seconds.count(), waits.requests,
                              CutText(waits.cause, kMaxCauseBytes)));
  }
  return all;
}

std::vector<wire::StoreHealth> StoreReader::Health() const {
  std::vector<wire::StoreHealth> all;
  all.reserve(datasets_.size());
  for (const auto& [_, dataset] : datasets_) {
    storage::StoreHealth health = dataset->store().Health();
    const auto silent = std::chrono::duration_cast<std::chrono::milliseconds>(health.silent_for);
    all.push_back({.dataset = dataset->key(),
                   .state = StateOf(health.state),
                   .silent_ms = static_cast<std::uint64_t>(silent.count()),
                   .cause = CutText(std::move(health.cause), kMaxCauseBytes)});
  }
  return all;
}

// On a thread of the store, or, where nothing was read, on the loop's.
void StoreReader::OnRead(std::shared_ptr<Together> reads, const storage::ReadOutcome& outcome) {
  for (std::shared_ptr<Pending>& read : *reads) {
    Result<std::uint32_t> crc =
        outcome.status.ok() ? Check(*read, outcome.attempts) : Error(outcome.status);
    End(std::move(read), std::move(crc));
  }
}

Result<std::uint32_t> StoreReader::Check(const Pending& read, unsigned attempt) {
  const dataset::Manifest& manifest = read.dataset.manifest();
  const auto digest = manifest.SampleDigest(read.id);
  if (!digest || dataset::Sha256Of(read.into->bytes()) == *digest) {
    return Crc32c(read.into->bytes());
  }
  const std::string& store = read.dataset.store().name();
  Status damaged(Code::kDataLoss,
                 store + ": " + manifest.Path(read.id) +
                     ": its SHA-256 is not the manifest's; the object was changed or is damaged: "
                     "restore it, or index the dataset again");
  const storage::SampleRange range = storage::RangeOf(manifest, read.id);
  const dataset::Object object = manifest.ObjectAt(range.object);
  damaged_.Tell({.store = store,
                 .object = object.path,
                 .begin = range.begin,
                 .end = range.end,
                 .attempt = attempt,
                 .status = damaged});
  return Error(std::move(damaged));
}

void StoreReader::End(std::shared_ptr<Pending> read, Result<std::uint32_t> crc) {
  loop_.Post([read = std::move(read), crc = std::move(crc)]() mutable {
    const Done done = std::move(read->done);
    read.reset();
    done(std::move(crc));
  });
}

}  // namespace optcache::sidecar
