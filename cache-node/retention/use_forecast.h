#pragma once

// When samples are read next, as far as plans know: what is read soonest stays in memory.

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/stop_check.h"

namespace optcache::node {

// Where each sample is read in one pass, by id.
using PositionsOf = std::shared_ptr<const std::vector<std::uint32_t>>;

// Of samples that the pass does not read, and of positions that are larger.
inline constexpr std::uint32_t kNotRead = 0xffffffffU;

// The first position of each of `samples` samples. Once `stop` says so they mean nothing.
PositionsOf FirstPositions(const std::vector<SampleId>& order, std::uint32_t samples,
                           const StopCheck& stop = {});

// 4 bytes a sample and pass, two passes or three a stream. Not thread-safe: the event loop owns it.
class UseForecast {
 public:
  void Add(StreamId stream, PassNumber pass, Position length, PositionsOf positions);
  // A read of a rank of this node: what lies before it has been read. Frees passes that are over.
  void OnRead(StreamId stream, PassNumber pass, Position position);
  void ForgetStream(StreamId stream);
  void ForgetAll() { streams_.clear(); }

  bool empty() const { return streams_.empty(); }
  // How many reads of a stream are made before that of this sample, of the stream that reads it
  // soonest; cache::kUseUnknown: no plan reaches so far.
  double NextUse(SampleId id) const;

 private:
  struct Pass {
    Position length = 0;
    PositionsOf positions;
  };
  struct Stream {
    PassNumber pass = 0;  // of the latest read
    Position position = 0;
    std::map<PassNumber, Pass> passes;
  };
  std::map<StreamId, Stream> streams_;
};

}  // namespace optcache::node
