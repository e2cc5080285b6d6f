#pragma once

// The plan of one pass of one stream (or of a part of it): for each read, where the sample is and
// where it goes. Made by the planner; exact meaning and digest: docs/formats/plan.md.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/random.h"
#include "base/stop_check.h"
#include "plan/bit_vector.h"

namespace optcache::plan {

struct Decision {
  NodeIndex holder = kNoNode;   // the node that has the sample when it is read; kNoNode: the store
  NodeIndex keep_at = kNoNode;  // the node that has it afterwards: that of its next read, or one
                                // that has room to spare; kNoNode: drop
  bool planned_here = false;    // the holder is the reader's own node

  friend bool operator==(const Decision&, const Decision&) = default;
};

struct PassKey {
  StreamId stream = 0;
  PassNumber pass = 0;

  friend bool operator==(const PassKey&, const PassKey&) = default;
};

// What a plan predicts. A read is exactly one of: local hit, peer hit, store read.
struct PlanStats {
  std::uint64_t accesses = 0;
  std::uint64_t local_hits = 0;
  std::uint64_t peer_hits = 0;  // held at another node than the reader's
  std::uint64_t store_reads = 0;
  std::uint64_t moves = 0;  // sent on to be kept: at neither the reader's node nor where it was
  ByteCount bytes = 0;
  ByteCount local_hit_bytes = 0;
  ByteCount peer_hit_bytes = 0;
  ByteCount store_bytes = 0;
  ByteCount moved_bytes = 0;
  std::array<std::uint64_t, 10> accesses_by_tenth{};  // of the pass, by position
  std::array<std::uint64_t, 10> hits_by_tenth{};

  PlanStats& operator+=(const PlanStats& other);
};

// One byte a node if there are few, two otherwise.
class NodeColumn {
 public:
  NodeColumn() = default;
  NodeColumn(std::size_t size, std::size_t nodes);

  bool empty() const { return narrow_.empty() && wide_.empty(); }
  // `digest` with all entries mixed in, eight bytes at a time.
  std::uint64_t MixInto(std::uint64_t digest, const StopCheck& stop) const;
  NodeIndex Get(std::size_t i) const {
    if (!wide_.empty()) return wide_[i];
    return narrow_[i] == kNarrowNone ? kNoNode : narrow_[i];
  }
  // Adds positions up to `size`, of no node; there is room for `limit`.
  void GrowTo(std::size_t size, std::size_t limit, std::size_t nodes);
  void Set(std::size_t i, NodeIndex node) {
    if (!wide_.empty()) {
      wide_[i] = node;
    } else {
      narrow_[i] = static_cast<std::uint8_t>(node);  // kNoNode becomes kNarrowNone
    }
  }

 private:
  static constexpr std::uint8_t kNarrowNone = 0xff;

  std::vector<std::uint8_t> narrow_;
  std::vector<std::uint16_t> wide_;
};

// Immutable once made, so shared freely between threads. Takes a bit and a byte a position (two
// from 255 nodes on), and as much again if samples lie at other nodes than their readers.
class PassPlan {
 public:
  const PassKey& key() const { return key_; }
  // The positions it decides: [begin, end) of the pass.
  Position begin() const { return begin_; }
  Position end() const { return end_; }
  bool Covers(Position position) const { return begin_ <= position && position < end_; }

  // What to do at `position`. Outside [begin, end): nobody has it, nobody keeps it.
  Decision At(Position position) const;
  const std::vector<NodeIndex>& node_of_rank() const { return node_of_rank_; }
  // The node that reads `position`.
  NodeIndex ReaderAt(Position position) const {
    return node_of_rank_[static_cast<std::size_t>(position % node_of_rank_.size())];
  }

  const PlanStats& stats() const { return stats_; }
  // Over all decisions; equal wherever it is computed from the same inputs.
  std::uint64_t digest() const { return digest_; }

 private:
  friend class PassPlanBuilder;
  PassPlan() = default;

  PassKey key_;
  Position begin_ = 0;
  Position end_ = 0;
  std::vector<NodeIndex> node_of_rank_;
  BitVector here_;
  NodeColumn keep_at_;
  NodeColumn peer_;  // empty unless a sample is read from a peer
  PlanStats stats_;
  std::uint64_t digest_ = 0;
};

// Makes a PassPlan from its reads, one after the other. Not thread-safe: a value with one owner.
class PassPlanBuilder {
 public:
  struct Range {
    PassKey key;
    Position begin = 0;
    Position end = 0;
    Position pass_length = 0;
  };
  PassPlanBuilder(const Range& range, std::vector<NodeIndex> node_of_rank, std::size_t nodes);

  // The next position's read. Without branches that depend on the plan: those cannot be predicted.
  void Add(NodeIndex reader, NodeIndex holder, NodeIndex keep_at, std::uint32_t bytes) {
    const std::size_t i = added_++;
    if (i >= tenth_end_) StartTenth();
    const bool hit = holder != kNoNode;
    const bool here = hit & (holder == reader);
    const bool moves = (keep_at != kNoNode) & (keep_at != reader) & (keep_at != holder);
    bytes_ += bytes;
    local_hits_ += std::uint64_t{here};
    local_hit_bytes_ += here ? bytes : 0U;
    moves_ += std::uint64_t{moves};
    moved_bytes_ += moves ? bytes : 0U;
    hits_in_tenth_ += std::uint64_t{hit};
    plan_->here_.SetIf(i, here);
    plan_->keep_at_.Set(i, keep_at);
    if (hit & !here) [[unlikely]]
      AddPeerHit(i, holder, bytes);
  }

  // Every position of the range has been added.
  bool full() const { return plan_->begin_ + added_ == plan_->end_; }
  // When every position of the range has been added; the builder is used up then. Once `stop` says
  // so the plan's digest means nothing.
  std::shared_ptr<const PassPlan> Finish(const StopCheck& stop = {});

 private:
  void AddPeerHit(std::size_t i, NodeIndex holder, std::uint32_t bytes);
  static std::uint64_t Digest(const PassPlan& plan, const StopCheck& stop);
  void StartTenth();
  void EndTenth(std::size_t end);

  std::shared_ptr<PassPlan> plan_;
  std::size_t nodes_;
  Position pass_length_;
  std::size_t added_ = 0;
  std::size_t tenth_ = 0;
  std::size_t tenth_begin_ = 0;
  std::size_t tenth_end_ = 0;
  std::uint64_t hits_in_tenth_ = 0;
  // Of all reads so far; PlanStats says what they mean.
  std::uint64_t local_hits_ = 0;
  std::uint64_t moves_ = 0;
  ByteCount bytes_ = 0;
  ByteCount local_hit_bytes_ = 0;
  ByteCount moved_bytes_ = 0;
};

}  // namespace optcache::plan
