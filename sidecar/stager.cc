#include "sidecar/stager.h"

#include <algorithm>
#include <utility>

namespace optcache::sidecar {
namespace {

// A rank is staged at most so far ahead: a part of a pass, for who has read the next pass before
// others have read this one cannot be given what they will have read; within these limits.
constexpr std::size_t kAheadPart = 4;
constexpr std::size_t kAheadMin = 256;
constexpr std::size_t kAheadMax = 4096;

// A sample that takes more than this part of the window would empty it of all others: it is staged
// in the overflow instead.
constexpr ByteCount kLargePart = 4;

ByteCount StagedArenaBytes(const RankReader& reader) {
  return reader.current()->staged_arena_bytes() +
         (reader.next() != nullptr ? reader.next()->staged_arena_bytes() : 0);
}

bool Reads(const RankReader& reader) {
  return !reader.ended() && reader.current() != nullptr;
}

}  // namespace

Stager::Stager(ReaderTable& readers, SampleMemory& memory, Fetcher& fetcher,
               std::function<void(HeldSample&)> ended)
    : readers_(readers), memory_(memory), fetcher_(fetcher), ended_(std::move(ended)) {}

std::size_t Stager::MayStage(const RankReader& reader) {
  if (reader.current() == nullptr || reader.current()->order() == nullptr) return 0;
  const std::size_t reads = reader.current()->order()->ids.size();
  return std::clamp(reads / kAheadPart, kAheadMin, kAheadMax);
}

void Stager::Fill() {
  ByteCount ranks = 0;
  for (const auto& [id, reader] : readers_.readers())
    ranks += Reads(reader) ? 1U : 0U;
  if (ranks == 0) return;
  const ByteCount window = memory_.arena_capacity() / ranks;
  for (auto& [id, reader] : readers_.readers()) {
    if (!Reads(reader) || reader.staging_held()) continue;
    Step step = Step::kStaged;
    while (step == Step::kStaged || step == Step::kPassedOver)
      step = StageNext(reader, window);
  }
}

Stager::Step Stager::StageNext(RankReader& reader, ByteCount window) {
  Pass* pass = reader.current();
  auto index = pass->NextToStage();
  if (!index && reader.next() != nullptr && pass->trusted()) {
    pass = reader.next();
    index = pass->NextToStage();
  }
  if (!index) return Step::kNothingLeft;
  const Attachment& attachment = reader.attachment();
  const SampleId id = pass->order()->ids[*index];
  const ByteCount size = attachment.dataset->SizeOf(id);
  if (reader.staged() >= MayStage(reader)) return Step::kNoRoom;
  BufferRef buffer = Allocate(size, window, StagedArenaBytes(reader));
  if (buffer == nullptr) {
    if (size <= window) return Step::kNoRoom;
    pass->PassOver(*index);
    return Step::kPassedOver;
  }
  auto sample = std::make_shared<HeldSample>(
      fetcher_, *attachment.dataset, attachment.stream,
      wire::ReadItem{.pass = pass->span().pass, .position = reader.PositionOf(*index), .id = id});
  sample->Fetch(std::move(buffer), Urgency::kStaged,
                [this, loaded = sample.get()] { ended_(*loaded); });
  pass->Stage(*index, std::move(sample));
  return Step::kStaged;
}

BufferRef Stager::Allocate(ByteCount size, ByteCount window, ByteCount staged_arena_bytes) {
  if (size > window / kLargePart) {
    if (BufferRef buffer = memory_.AllocateStaged(size)) return buffer;
  }
  if (staged_arena_bytes > window || size > window - staged_arena_bytes) return nullptr;
  return memory_.AllocateInArena(size);
}

}  // namespace optcache::sidecar
