#pragma once

// Several streams' reads in one order, by virtual time: a stream of rate r makes its k-th read at
// time k / r. Integers only, ties to the first stream, so that every node merges alike. How the
// streams really interleave need not be known: rates measured online lose at most .001 of hit
// ratio if every choice goes by the latest ones, and .003 to .011 while rates drift by a tenth and
// plans are made again ten times an epoch (docs/benchmarks.md).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/stop_check.h"
#include "plan/uncleared.h"

namespace optcache::plan {

// A pass's global order; shared because several plans in the making read the same one.
using Order = std::shared_ptr<const std::vector<SampleId>>;
// The largest id of an order; 0 if it is empty.
SampleId LargestOf(const std::vector<SampleId>& order, const StopCheck& stop);

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

  // Merges until every stream is at its end, or for `max_reads` reads. Once `stop` says so it is
  // not whole, and must not be used.
  MergedOrder(std::vector<MergeStream> streams, std::size_t max_reads, StopCheck stop = {});

  std::size_t size() const { return size_; }
  const std::vector<MergeStream>& streams() const { return streams_; }

  struct Read {
    SampleId sample = kNoSample;
    NodeIndex reader = kNoNode;
    std::uint8_t stream = 0;
  };

  // Walks the merged reads, forward or back. The order must outlive it.
  class Cursor {
   public:
    // At the front.
    explicit Cursor(const MergedOrder& merged);

    // The read that lies ahead; there must be one.
    Read Next() {
      const std::uint8_t stream = merged_->stream_of_read_[at_++];
      Place& place = places_[stream];
      if (place.position == place.end) EnterAtFront(place, place.segment + 1);
      const Read read{.sample = place.ids[place.position],
                      .reader = place.node_of_rank[place.rank],
                      .stream = stream};
      ++place.position;
      if (++place.rank == place.ranks) place.rank = 0;
      return read;
    }
    // The read that lies behind; there must be one.
    Read Previous() {
      const std::uint8_t stream = merged_->stream_of_read_[--at_];
      Place& place = places_[stream];
      if (place.position == place.begin) EnterAtBack(place, place.segment - 1);
      if (place.rank == 0) place.rank = place.ranks;
      --place.rank;
      --place.position;
      return {.sample = place.ids[place.position],
              .reader = place.node_of_rank[place.rank],
              .stream = stream};
    }

   private:
    friend class MergedOrder;
    // Where one stream stands.
    struct Place {
      const SampleId* ids = nullptr;
      Position begin = 0;
      Position end = 0;
      Position position = 0;
      const NodeIndex* node_of_rank = nullptr;
      std::size_t ranks = 0;
      std::size_t rank = 0;
      const OrderSegment* segment = nullptr;
    };
    static void EnterAtFront(Place& place, const OrderSegment* segment);
    static void EnterAtBack(Place& place, const OrderSegment* segment);

    const MergedOrder* merged_;
    std::size_t at_ = 0;
    std::vector<Place> places_;
  };
  // At the back: Previous gives the last read first. Once `stop` says so it must not be used.
  Cursor End() const;

  // How many of the first `reads` belong to each stream.
  std::vector<std::uint64_t> ReadsByStream(std::size_t reads) const;

 private:
  std::vector<MergeStream> streams_;
  StopCheck stop_;
  Uncleared<std::uint8_t> stream_of_read_;
  std::size_t size_ = 0;
};

}  // namespace optcache::plan
