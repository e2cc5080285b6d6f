#pragma once

// Keeps the arena full of what the trainers will ask for next.

#include <functional>

#include "base/bytes.h"
#include "sidecar/fetch/fetcher.h"
#include "sidecar/fetch/held_sample.h"
#include "sidecar/ports/sample_memory.h"
#include "sidecar/prefetch/reader_table.h"

namespace optcache::sidecar {

// Each rank has an equal share of the arena as its window, in bytes; positions are staged in their
// order, and the window runs on into the next pass, a quarter of a pass at most. What is pinned by
// clients narrows it by itself, since the arena has no room then. A staged sample is never given up
// for one that is asked for: the node has handed it over, so that it would be read from the store a
// second time, where an answer by copy costs only the copy. Not thread-safe: belongs to the event
// loop's thread.
class Prefetcher {
 public:
  // `ended` is called when a staged sample has arrived or failed.
  Prefetcher(ReaderTable& readers, SampleMemory& memory, Fetcher& fetcher,
             std::function<void(HeldSample&)> ended);

  // Those that read.
  static std::size_t Ranks(const ReaderTable& readers);
  // How many samples of a rank's order may be staged at a time, memory aside, if `ranks` read.
  static std::size_t MayStage(const RankReader& reader, std::size_t ranks);

  // Stages what there is room for, or a good part of it: true if it is to be called again before
  // long, so that others have their turn.
  bool Fill();

 private:
  enum class Step { kStaged, kNoRoom, kEnough, kNothingLeft };
  // Some of what is next for that reader: kStaged if there may be more.
  Step StageInOneGo(RankReader& reader, std::size_t ranks);
  Step StageNext(RankReader& reader, ByteCount window);
  // In the arena, or in the overflow if it would crowd out all others there; null: no room.
  BufferRef Allocate(ByteCount size, ByteCount window, ByteCount staged_arena_bytes);

  ReaderTable& readers_;
  SampleMemory& memory_;
  Fetcher& fetcher_;
  std::function<void(HeldSample&)> ended_;
};

}  // namespace optcache::sidecar
