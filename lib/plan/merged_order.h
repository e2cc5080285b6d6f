#pragma once

// Several streams' reads in one order, by virtual time: a stream of rate r makes its k-th read at
// time k / r. Integers only, ties to the first stream, so that every node merges alike. How the
// streams really interleave need not be known: rates measured online lose at most .001 of hit
// ratio.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"

namespace optcache::plan {

// A pass's global order; shared because several plans in the making read the same one.
using Order = std::shared_ptr<const std::vector<SampleId>>;

// Positions [begin, end) of one pass.
struct OrderSegment {
  Order order;
  PassNumber pass = 0;
  Position begin = 0;
  Position end = 0;
};

// What lies ahead of one stream.
struct MergeStream {
  std::vector<OrderSegment> segments;  // in reading order, none of them empty
  std::vector<NodeIndex> node_of_rank;
  std::uint32_t rate = 1;        // reads in a unit of virtual time; positive
  std::uint64_t reads_done = 0;  // before the first segment, since virtual time began
};

class MergedOrder {
 public:
  static constexpr std::size_t kMaxStreams = 256;

  // Merges until every stream is at its end, or for `max_reads` reads.
  MergedOrder(std::vector<MergeStream> streams, std::size_t max_reads);

  std::size_t size() const { return stream_of_read_.size(); }
  const std::vector<MergeStream>& streams() const { return streams_; }

  struct Read {
    SampleId sample = kNoSample;
    NodeIndex reader = kNoNode;
    std::uint8_t stream = 0;
  };

  // Walks the merged reads, from the front or, once there, from the back. The order must outlive
  // it.
  class Cursor {
   public:
    explicit Cursor(const MergedOrder& merged);
    Read Next();
    Read Previous();  // the one that the last Next gave

   private:
    struct Place {
      const OrderSegment* segment = nullptr;
      const SampleId* ids = nullptr;
      Position position = 0;
      std::size_t rank = 0;
    };
    void Enter(Place& place, const OrderSegment* segment, Position position, std::uint8_t stream);

    const MergedOrder* merged_;
    std::size_t at_ = 0;
    std::vector<Place> places_;
  };
  // At the back: Previous gives the last read first.
  Cursor End() const;

  // How many of the first `reads` belong to each stream.
  std::vector<std::uint64_t> ReadsByStream(std::size_t reads) const;

 private:
  std::vector<MergeStream> streams_;
  std::vector<std::uint8_t> stream_of_read_;
};

}  // namespace optcache::plan
