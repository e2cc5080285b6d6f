#include "sidecar/prefetch/prefetcher.h"

#include <algorithm>
#include <utility>

namespace optcache::sidecar {
namespace {

// A rank is staged at most so far ahead: a part of a pass, for who has read the next pass before
// others have read this one cannot be given what they will have read. How many samples that may be
// is bounded by what is remembered of each.
constexpr std::size_t kAheadPart = 4;
constexpr std::size_t kAheadMin = 256;
constexpr std::size_t kStagedMax = 16'384;
constexpr std::size_t kStagedOfAll = 32'768;

// Staged for a rank in one go; the rest follows when others have had their turn.
constexpr std::size_t kInOneGo = 1024;

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

Prefetcher::Prefetcher(ReaderTable& readers, SampleMemory& memory, Fetcher& fetcher,
                       std::function<void(HeldSample&)> ended)
    : readers_(readers), memory_(memory), fetcher_(fetcher), ended_(std::move(ended)) {}

std::size_t Prefetcher::Ranks(const ReaderTable& readers) {
  return static_cast<std::size_t>(std::ranges::count_if(
      readers.readers(), [](const auto& entry) { return Reads(entry.second); }));
}

std::size_t Prefetcher::MayStage(const RankReader& reader, std::size_t ranks) {
  if (reader.current() == nullptr || reader.current()->order() == nullptr) return 0;
  const std::size_t reads = reader.current()->order()->ids.size();
  const std::size_t most =
      std::clamp(kStagedOfAll / std::max<std::size_t>(ranks, 1), kAheadMin, kStagedMax);
  return std::clamp(reads / kAheadPart, kAheadMin, most);
}

bool Prefetcher::Fill() {
  const std::size_t ranks = Ranks(readers_);
  bool more = false;
  for (auto& [id, reader] : readers_.readers()) {
    const bool stages = Reads(reader) && !reader.staging_held();
    const Step step = stages ? StageInOneGo(reader, ranks) : Step::kEnough;
    reader.SetLacksRoom(step == Step::kNoRoom);
    more = more || step == Step::kStaged;
  }
  return more;
}

Prefetcher::Step Prefetcher::StageInOneGo(RankReader& reader, std::size_t ranks) {
  const ByteCount window = memory_.arena_capacity() / ranks;
  const std::size_t most = MayStage(reader, ranks);
  Step step = Step::kStaged;
  for (std::size_t i = 0; i < kInOneGo && step == Step::kStaged; ++i)
    step = reader.staged() < most ? StageNext(reader, window) : Step::kEnough;
  return step;
}

Prefetcher::Step Prefetcher::StageNext(RankReader& reader, ByteCount window) {
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
  BufferRef buffer = Allocate(size, window, StagedArenaBytes(reader));
  if (buffer == nullptr) {
    if (size > window) {
      pass->PassOver(*index);
      return Step::kStaged;
    }
    const bool again = reader.staged() == 0 && memory_.MakeRoom(RoomFor::kStaged);
    return again ? Step::kStaged : Step::kNoRoom;
  }
  auto sample = std::make_shared<HeldSample>(
      fetcher_, *attachment.dataset, attachment.stream,
      wire::ReadItem{.pass = pass->span().pass, .position = reader.PositionOf(*index), .id = id},
      reader.DueOf(*pass, *index));
  if (reader.lacks_room()) sample->NoteNoRoom();
  sample->Fetch(std::move(buffer), Urgency::kStaged,
                [this, loaded = sample.get()] { ended_(*loaded); });
  pass->Stage(*index, std::move(sample));
  return Step::kStaged;
}

BufferRef Prefetcher::Allocate(ByteCount size, ByteCount window, ByteCount staged_arena_bytes) {
  if (size > window / kLargePart) {
    if (BufferRef buffer = memory_.AllocateStaged(size)) return buffer;
  }
  if (staged_arena_bytes > window || size > window - staged_arena_bytes) return nullptr;
  return memory_.AllocateInArena(size);
}

}  // namespace optcache::sidecar
