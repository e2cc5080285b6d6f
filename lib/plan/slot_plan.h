#pragma once

// The slot plan: what to keep while one stream shuffles pass after pass. Exact for equal sizes:
// reads at the lower bound, moves at their floor, even over the pass, no node over its capacity at
// any read.
//
// On node B room becomes free each time a sample that B holds is read: F_B(t) bytes by read t. A
// sample read at t whose next reader (in the next pass) is on B may take such room. A set X of them
// fits iff for every t the bytes of X read by t are at most F_B(t). For equal sizes such sets are a
// matroid, so greedy is optimal: first the samples that B itself reads (nothing moves), in order,
// then the others, in order, as far as the least room from then on allows.
//
//   bytes
//     |                        __/  F_B(t)
//     |                  _____/ ____
//     |            _____/  ____/      chosen by t
//     |      _____/ ______/
//     |_____/______/_______________ t
//
// When requests are to be spared, the smallest samples of the dataset that fit in the capacity
// together, the small ones, go before: first the two steps with small candidates alone, then with
// all. A small sample that is read and kept takes the room that it had, so once the small ones are
// held they stay, and the store is asked for as few samples as any plan can; in bytes it is as good
// as any other.
//
// What finds no room there is kept at any node that has some left: one that nobody reads through,
// or that has more than its ranks can use. It stays there, and its readers ask that node for it.
//
// A sample that occurs twice in a pass (padding) is first of all kept from one occurrence to the
// next: among those intervals MIN chooses, and the rest of the room is used as above.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/stop_check.h"
#include "plan/bit_vector.h"
#include "plan/holders.h"
#include "plan/objective.h"
#include "plan/pass_plan.h"
#include "plan/sizes.h"
#include "plan/uncleared.h"

namespace optcache::plan {

// Keeps its working memory (12 bytes a sample) between passes. Not thread-safe: one owner.
class SlotPlanner {
 public:
  struct Options {
    Sizes sizes;
    std::vector<ByteCount> capacities;  // by node
    ByteCount max_moved_bytes_per_sample = 0;
    Objective objective = Objective::kBytes;
    StopCheck stop;  // then what Load and Plan give means nothing
  };
  explicit SlotPlanner(Options options);

  // The reads to plan: positions [begin, current.size()) of the current pass. `next` is empty if
  // there is no next pass. Every id is below sizes.count(); ranks may have no node (kNoNode).
  struct Pass {
    PassKey key;
    Position begin = 0;
    std::span<const SampleId> current;
    std::span<const SampleId> next;
    std::span<const NodeIndex> node_of_rank;
  };
  // Reads of the current pass that are not followed by one read of the same sample in the next:
  // repeats inside a pass, and samples that the next pass leaves out. Few in a shuffling stream.
  struct Irregular {
    std::uint64_t repeats = 0;
    std::uint64_t missing = 0;
  };
  Irregular Load(const Pass& pass, const Holders& holders);

  struct Output {
    std::vector<SampleId> evictions;  // held at the start, and in neither pass
    std::shared_ptr<const PassPlan> plan;
  };
  // Plans what was loaded; `holders`, the same as given to Load, becomes the state afterwards. What
  // they hold must fit in the capacities.
  Output Plan(Holders& holders);

 private:
  // One read: the node whose room it frees, and the node that could keep the sample afterwards; the
  // number of nodes stands for none, so that the loops over steps need no branches.
  struct Step {
    NodeIndex release;
    NodeIndex target;
  };
  using ByNode = std::vector<std::int64_t>;  // bytes, with an entry for "none" at the end
  // A sample kept from one read to another of the same pass; indices into steps_.
  struct Interval {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  enum class Candidates { kOfReader, kOfOthers };

  std::uint64_t LoadNextReaders();
  void LoadSteps(const Holders& holders, Irregular& irregular);
  void LoadRepeats();
  void FindRoom(Holders& holders, std::vector<SampleId>& evictions);
  void ChooseIntervals();
  void CreditEveryRelease();
  ByNode RoomAtEnd() const;
  void ComputeCredits(ByNode room_at_end);
  void ChooseForNextPass();
  void Choose(Candidates which);
  std::vector<NodeIndex> SpareNodes(const ByNode& room_at_end) const;
  void ChooseSpare();
  std::shared_ptr<const PassPlan> Commit(Holders& holders);

  NodeIndex none() const { return static_cast<NodeIndex>(options_.capacities.size()); }
  std::uint32_t BytesAt(std::size_t step) const {
    return options_.sizes[pass_.current[pass_.begin + step]];
  }

  NodeIndex ReaderOf(std::size_t step) const {
    return pass_.node_of_rank[(pass_.begin + step) % pass_.node_of_rank.size()];
  }

  Options options_;
  Pass pass_;
  std::vector<NodeIndex> next_reader_;  // by sample: its first reader in the next pass
  BitVector too_late_;                  // by sample: see LoadNextReaders; empty for equal sizes
  BitVector small_;                     // by sample: goes before others; empty: none does
  bool small_alone_ = false;            // the others are no candidates now
  BitVector seen_;                      // by sample: read in what is left of the current pass
  Uncleared<Step> steps_;
  bool has_repeats_ = false;          // a sample is read twice in what is left of the pass
  std::vector<Interval> intervals_;   // candidates, ordered by begin
  BitVector kept_;                    // by step
  Uncleared<std::uint32_t> credits_;  // by step: see ComputeCredits
  ByNode start_room_;                 // free at the start
  ByNode start_credit_;               // of that, what may be used at once
};

}  // namespace optcache::plan
