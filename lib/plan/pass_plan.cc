// Keeps a plan's decisions in columns, and makes their digest and sums.
//
// The idea: almost all hits are at the reader's own node, so one bit a read says "here", and the
// reader follows from the position. Only a read that finds its sample at a peer needs a holder, and
// that column begins with the first of them. The digest goes over the key, the range and the
// columns, eight bytes at a time. Add counts without branches; Finish derives what follows from the
// counts, such as the store's reads.

#include "plan/pass_plan.h"

#include <algorithm>

#include "base/check.h"

namespace optcache::plan {
namespace {

constexpr std::uint64_t kPassDigestSeed = 0x6f70742d706c616eULL;  // "opt-plan"
constexpr std::size_t kFirstWideCount = 255;

}  // namespace

PlanStats& PlanStats::operator+=(const PlanStats& other) {
  accesses += other.accesses;
  local_hits += other.local_hits;
  peer_hits += other.peer_hits;
  store_reads += other.store_reads;
  moves += other.moves;
  bytes += other.bytes;
  local_hit_bytes += other.local_hit_bytes;
  peer_hit_bytes += other.peer_hit_bytes;
  store_bytes += other.store_bytes;
  moved_bytes += other.moved_bytes;
  for (std::size_t i = 0; i < hits_by_tenth.size(); ++i) {
    accesses_by_tenth[i] += other.accesses_by_tenth[i];
    hits_by_tenth[i] += other.hits_by_tenth[i];
  }
  return *this;
}

namespace {

// The entries as little-endian words, the last one filled up with zeros.
template <typename Entry>
std::uint64_t MixEntries(const std::vector<Entry>& entries, std::uint64_t digest,
                         const StopCheck& stop) {
  constexpr std::size_t kInWord = sizeof(std::uint64_t) / sizeof(Entry);
  for (std::size_t i = 0; i < entries.size() && !stop.At(i); i += kInWord) {
    std::uint64_t word = 0;
    const std::size_t end = std::min(kInWord, entries.size() - i);
    for (std::size_t j = 0; j < end; ++j) {
      word |= std::uint64_t{entries[i + j]} << (j * sizeof(Entry) * 8);
    }
    digest = Random::Mix(digest ^ word);
  }
  return digest;
}

}  // namespace

std::uint64_t NodeColumn::MixInto(std::uint64_t digest, const StopCheck& stop) const {
  return MixEntries(wide_, MixEntries(narrow_, digest, stop), stop);
}

NodeColumn::NodeColumn(std::size_t size, std::size_t nodes) {
  GrowTo(size, size, nodes);
}

void NodeColumn::GrowTo(std::size_t size, std::size_t limit, std::size_t nodes) {
  if (nodes < kFirstWideCount) {
    narrow_.reserve(limit);
    narrow_.resize(size, kNarrowNone);
  } else {
    wide_.reserve(limit);
    wide_.resize(size, kNoNode);
  }
}

Decision PassPlan::At(Position position) const {
  if (!Covers(position)) return {};
  const auto i = static_cast<std::size_t>(position - begin_);
  Decision decision;
  decision.keep_at = keep_at_.Get(i);
  decision.planned_here = here_.Test(i);
  if (decision.planned_here) {
    decision.holder = ReaderAt(position);
  } else if (!peer_.empty()) {
    decision.holder = peer_.Get(i);
  }
  return decision;
}

PassPlanBuilder::PassPlanBuilder(const Range& range, std::vector<NodeIndex> node_of_rank,
                                 std::size_t nodes)
    : plan_(new PassPlan), nodes_(nodes), pass_length_(range.pass_length) {
  const auto length = static_cast<std::size_t>(range.end - range.begin);
  plan_->key_ = range.key;
  plan_->begin_ = range.begin;
  plan_->end_ = range.end;
  plan_->node_of_rank_ = std::move(node_of_rank);
  plan_->here_ = BitVector(length);
  plan_->keep_at_ = NodeColumn(length, nodes);
  StartTenth();
}

// The column grows with its hits: to clear it as a whole would take long.
void PassPlanBuilder::AddPeerHit(std::size_t i, NodeIndex holder, std::uint32_t bytes) {
  plan_->peer_.GrowTo(i + 1, static_cast<std::size_t>(plan_->end_ - plan_->begin_), nodes_);
  plan_->peer_.Set(i, holder);
  ++plan_->stats_.peer_hits;
  plan_->stats_.peer_hit_bytes += bytes;
}

// Moves on to the tenth of the pass that the read just added lies in.
void PassPlanBuilder::StartTenth() {
  const std::size_t i = added_ == 0 ? 0 : added_ - 1;
  EndTenth(i);
  const Position position = plan_->begin_ + i;
  tenth_ = pass_length_ == 0 ? 0 : static_cast<std::size_t>(position * 10 / pass_length_);
  const Position end = (pass_length_ * (tenth_ + 1) + 9) / 10;
  tenth_begin_ = i;
  tenth_end_ = static_cast<std::size_t>(end - std::min(end, plan_->begin_));
}

void PassPlanBuilder::EndTenth(std::size_t end) {
  plan_->stats_.accesses_by_tenth[tenth_] += end - tenth_begin_;
  plan_->stats_.hits_by_tenth[tenth_] += std::exchange(hits_in_tenth_, 0);
}

std::uint64_t PassPlanBuilder::Digest(const PassPlan& plan, const StopCheck& stop) {
  std::uint64_t digest = kPassDigestSeed;
  for (const std::uint64_t word :
       {std::uint64_t{plan.key_.stream}, std::uint64_t{plan.key_.pass}, plan.begin_, plan.end_}) {
    digest = Random::Mix(digest ^ word);
  }
  digest = plan.keep_at_.MixInto(digest, stop);
  for (const std::uint64_t word : plan.here_.words())
    digest = Random::Mix(digest ^ word);
  return plan.peer_.MixInto(digest, stop);
}

std::shared_ptr<const PassPlan> PassPlanBuilder::Finish(const StopCheck& stop) {
  CHECK(full());
  EndTenth(added_);
  if (!plan_->peer_.empty()) plan_->peer_.GrowTo(added_, added_, nodes_);
  PlanStats& stats = plan_->stats_;
  stats.local_hits = local_hits_;
  stats.moves = moves_;
  stats.bytes = bytes_;
  stats.local_hit_bytes = local_hit_bytes_;
  stats.moved_bytes = moved_bytes_;
  stats.accesses = added_;
  stats.store_reads = stats.accesses - stats.local_hits - stats.peer_hits;
  stats.store_bytes = stats.bytes - stats.local_hit_bytes - stats.peer_hit_bytes;
  plan_->digest_ = Digest(*plan_, stop);
  return std::move(plan_);
}

}  // namespace optcache::plan
