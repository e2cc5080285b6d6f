// Follows one generation of a stream through its ranks' reports.
//
// Each report of a rank goes through Observe, in this order: is it believed at all (the rank may
// have ended, or read through another node), does its recipe agree, which epoch is its pass, did
// the pass before end early, how long is a pass, how far and how fast is the stream.
//
// The idea: a pass p is expected to be epoch first_epoch + step * (p - first_pass). The first
// report of a pass may correct that (FollowEpochs); a later one that contradicts is a conflict, and
// then the order counts as unknown. A pass stops early for the plan only if all ranks say so and
// nearly agree. The rate is the progress since the older of two marks. That mark is dropped when
// the younger one is far enough back, in time and in the pass, so a rate is never that of a moment.
//
// Invariants: the frontier only moves ahead. StreamRanks keeps the sums over ranks, so a report of
// one rank does not look at the others.

#include "coordinator/tracked_stream.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "sampler/recipe_text.h"

namespace optcache::coordination {
namespace {

// A pass that leaves out less than this share is whole: loaders drop their last, smaller batch.
constexpr Position kWholePassTolerance = 64;
// A pass that ends before this share of its list is planned whole: each of the passes that a plan
// looks into costs a whole order, and one read of each would need as many as a pass has reads.
constexpr Position kLeastShareOfPass = 32;
// A rank stays with its node this long after that node listed it, whatever another one says.
constexpr Duration kRankStays = std::chrono::seconds(3);
// The rate is measured over this share of a pass and this time, at first over a shorter one
// (reports come every second); a stream that stands still for kPause has paused.
constexpr double kRateWindow = 0.02;
constexpr Duration kRateTime = std::chrono::seconds(10);
constexpr Duration kFirstRateAfter = std::chrono::seconds(1);
constexpr Duration kPause = std::chrono::seconds(5);
// A stream whose ranks took longer than this to gather is planned from where it is.
constexpr PassNumber kMaxPassesBeforePlan = 2;

std::string Disagreement(const char* what, std::int64_t first, Rank first_rank, std::int64_t second,
                         Rank second_rank) {
  return std::string(what) + ": " + std::to_string(first) + " (rank " + std::to_string(first_rank) +
         "), " + std::to_string(second) + " (rank " + std::to_string(second_rank) + ")";
}

std::string OrderDifference(const Recipe& one, const Recipe& other) {
  const auto first = SamplerRecipe(one);
  const auto second = SamplerRecipe(other);
  return first && second ? sampler::FirstDifference(*first, *second) : "one is unknown here";
}

}  // namespace

TrackedStream::TrackedStream(const StreamReport& first, Version generation, MonotonicTime now)
    : id_(first.id),
      name_(first.name),
      incarnation_(first.incarnation),
      generation_(generation),
      heard_(now) {}

bool TrackedStream::BeginsAnew(const RankReport& report) const {
  const RankEntry* const known = ranks_.Find(report.rank);
  if (known == nullptr || report.ended || !report.started) return false;
  const RankReport& before = known->report;
  if (!before.started) return false;
  return report.pass < before.pass || report.recipe.world != before.recipe.world ||
         (report.pass == before.pass && report.epoch != before.epoch);
}

bool TrackedStream::Has(Rank rank, MemberId member) const {
  const RankEntry* const known = ranks_.Find(rank);
  return known != nullptr && known->member == member;
}

void TrackedStream::Observe(const RankReport& report, MemberId member, MonotonicTime now) {
  // Nodes list for a while what has ended with them. That a rank has ended is known from the node
  // with which it read; another one speaks of the job before, or of a place that the rank has left.
  const RankEntry* const known = ranks_.Find(report.rank);
  if (report.ended && (known == nullptr || known->member != member)) return;
  // Who had begun to read has been started again, or its node has and will soon be told.
  if (known != nullptr && known->report.started && !report.started) return;
  if (ranks_.size() == 0 || (!recipe_.known && report.recipe.known)) TakeRecipe(report);
  CheckRecipe(report);
  if (report.rank >= recipe_.world) return;
  const bool stays = known != nullptr && known->member != 0 && known->member != member &&
                     !known->report.ended && now - known->heard < kRankStays;
  if (stays) return;
  ranks_.Set(report.rank,
             {.report = report, .member = member, .last_member = member, .heard = now});
  heard_ = std::max(heard_, now);
  names_lists_ = names_lists_ || !report.traces.empty();
  if (!report.started) return;
  if (!started_) started_at_ = now;
  FollowEpochs(report);
  NoteEnds(report);
  TakeLength(report, now);
  Reached({.pass = report.pass, .position = report.position});
  MeasureRate(now);
}

void TrackedStream::TakeRecipe(const RankReport& report) {
  recipe_ = report.recipe;
  recipe_rank_ = report.rank;
  whole_length_ = PassLength(recipe_);
  pass_length_ = whole_length_;
}

// Passes of lists may differ in length, and those that are not read to their end are shorter.
void TrackedStream::TakeLength(const RankReport& report, MonotonicTime now) {
  const auto now_read = std::ranges::find(report.traces, report.pass, &PassTrace::pass);
  if (!recipe_.known && now_read != report.traces.end()) {
    whole_length_ = now_read->length * recipe_.world;
  }
  const Position stops_at = StopsAt();
  const Position length = stops_at != 0 ? stops_at : whole_length_;
  if (length == pass_length_) return;
  pass_length_ = length;
  last_progress_ = Progress();  // in passes of the new length
  progressed_at_ = now;
  const Mark here{.progress = last_progress_, .at = now};
  marks_ = {here, here};
}

// Ranks must agree: what one reads beyond the others would be in no plan.
Position TrackedStream::StopsAt() const {
  const auto& pass_reads = ranks_.totals().pass_reads;
  if (pass_reads.empty()) return 0;
  const std::uint64_t least = pass_reads.begin()->first;
  const std::uint64_t most = pass_reads.rbegin()->first;
  const std::uint64_t list = whole_length_ / recipe_.world;  // of a rank
  const std::uint64_t tolerance = list / kWholePassTolerance;
  const bool agree = most - least <= tolerance;
  const bool is_part = most >= list / kLeastShareOfPass && most < list - tolerance;
  return agree && least != 0 && is_part ? most * recipe_.world : 0;
}

void TrackedStream::CheckRecipe(const RankReport& report) {
  const Recipe& ours = recipe_;
  const Recipe& theirs = report.recipe;
  const std::array<std::tuple<const char*, std::int64_t, std::int64_t>, 5> fields = {{
      {"seed", ours.seed, theirs.seed},
      {"size", static_cast<std::int64_t>(ours.size), static_cast<std::int64_t>(theirs.size)},
      {"world size", ours.world, theirs.world},
      {"shuffle", ours.shuffle, theirs.shuffle},
      {"drop_last", ours.drop_last, theirs.drop_last},
  }};
  for (const auto& [what, first, second] : fields) {
    if (first == second || !conflict_.empty()) continue;
    conflict_ = Disagreement(what, first, recipe_rank_, second, report.rank);
  }
  // A rank whose order is not known yet may only be about to tell it.
  const bool differ = ours.known && theirs.known && ours.order != theirs.order;
  if (differ && conflict_.empty()) {
    conflict_ = "order of ranks " + std::to_string(recipe_rank_) + " and " +
                std::to_string(report.rank) + ": " + OrderDifference(ours, theirs);
  }
}

// Pass p is expected to be epoch first_epoch + step * (p - first_pass). When the ranks' first
// report of a pass says otherwise, or the pass before ended early, the stream starts again at that
// pass.
void TrackedStream::FollowEpochs(const RankReport& report) {
  if (!started_) {
    started_ = true;
    first_cut_ = {.pass = report.pass, .position = report.start / recipe_.world * recipe_.world};
    StartAt(report, epoch_step_);
    return;
  }
  if (report.pass < first_pass_) return StartEarlier(report);
  if (!recipe_.known && !report.traces.empty()) {  // lists say all that epochs would
    confirmed_pass_ = std::max(confirmed_pass_, report.pass);
    return;
  }
  const std::uint64_t expected =
      first_epoch_ + std::uint64_t{epoch_step_} * (report.pass - first_pass_);
  if (report.epoch != expected) {
    if (report.pass <= confirmed_pass_) {
      if (conflict_.empty()) {
        conflict_ = "epoch of pass " + std::to_string(report.pass) + ": " +
                    std::to_string(expected) + ", " + std::to_string(report.epoch) + " (rank " +
                    std::to_string(report.rank) + ")";
      }
      return;
    }
    const std::uint64_t before =
        first_epoch_ + std::uint64_t{epoch_step_} * (confirmed_pass_ - first_pass_);
    StartAt(report, report.epoch == before ? 0 : 1);
    return;
  }
  if (EndedEarly(report) && report.pass > first_pass_) StartAt(report, epoch_step_);
  confirmed_pass_ = std::max(confirmed_pass_, report.pass);
}

// The pass before the present one.
bool TrackedStream::EndedEarly(const RankReport& report) const {
  return report.last_pass_end != 0 && report.last_pass_end < LeastEnd();
}

// A pass counts as whole from here on: loaders drop their last, smaller batch.
Position TrackedStream::LeastEnd() const {
  return pass_length_ - std::min(pass_length_, whole_length_ / kWholePassTolerance);
}

// Passes of lists differ in length: nobody knows by now how long the one before was.
void TrackedStream::NoteEnds(const RankReport& report) {
  if (recipe_.known && EndedEarly(report) && report.pass > 0) cut_short_.insert(report.pass - 1);
  while (cut_short_.size() > kPassesReported)
    cut_short_.erase(cut_short_.begin());
}

// A rank that was heard late has begun in an earlier pass than the others were first seen in.
void TrackedStream::StartEarlier(const RankReport& report) {
  const bool same_epochs =
      report.epoch + std::uint64_t{epoch_step_} * (first_pass_ - report.pass) == first_epoch_;
  if (first_cut_.pass != first_pass_ || !same_epochs) return;
  first_cut_ = {.pass = report.pass, .position = report.start / recipe_.world * recipe_.world};
  first_pass_ = report.pass;
  first_epoch_ = report.epoch;
}

void TrackedStream::StartAt(const RankReport& report, std::uint32_t epoch_step) {
  first_pass_ = report.pass;
  first_epoch_ = report.epoch;
  epoch_step_ = epoch_step;
  confirmed_pass_ = report.pass;
}

void TrackedStream::Reached(const Cut& next) {
  frontier_ = std::max(frontier_, next);
}

void TrackedStream::NotePlanned(const Cut& next) {
  planned_ = std::max(planned_.value_or(next), next);
}

void TrackedStream::LoseRanks(MonotonicTime lost_before) {
  ranks_.LoseSilent(lost_before);
}

void TrackedStream::ForgetMember(MemberId member) {
  ranks_.ForgetMember(member);
}

void TrackedStream::Forgive(Duration pause) {
  heard_ += pause;
  ranks_.Forgive(pause);
}

bool TrackedStream::NamedBy(MemberId member, std::string_view digest) const {
  if (ranks_.totals().with_traces == 0) return false;
  return std::ranges::any_of(ranks_.entries(), [=](const auto& item) {
    const RankEntry& rank = item.second;
    return rank.member == member &&
           std::ranges::find(rank.report.traces, digest, &PassTrace::digest) !=
               rank.report.traces.end();
  });
}

NamedTraces TrackedStream::Traces() const {
  NamedTraces traces;
  if (ranks_.totals().with_traces == 0) return traces;
  const PassNumber lowest = LowestPass();
  for (const auto& [number, rank] : ranks_.entries()) {
    for (const PassTrace& trace : rank.report.traces) {
      if (trace.pass < lowest) continue;
      auto& ranks = traces[trace.pass];
      ranks.resize(recipe_.world);
      ranks[number] = trace.digest;
    }
  }
  return traces;
}

bool TrackedStream::TracesHold() const {
  return !recipe_.known && conflict_.empty() && ranks_.totals().astray == 0;
}

bool TrackedStream::HasRead(PassNumber pass) const {
  const bool from_begin = pass != first_cut_.pass || first_cut_.position == 0;
  if (!from_begin || pass < first_counted_ || cut_short_.contains(pass)) return false;
  if (pass < LowestPass()) return true;
  return AllRanksKnown() && std::ranges::all_of(ranks_.entries(), [&](const auto& item) {
           const RankReport& rank = item.second.report;
           const bool at_end = rank.pass == pass && rank.position + recipe_.world > LeastEnd();
           return rank.ended && (rank.pass > pass || at_end);
         });
}

PassNumber TrackedStream::LowestPass() const {
  std::optional<PassNumber> lowest;
  for (const auto& [number, rank] : ranks_.entries()) {
    const RankReport& report = rank.report;
    if (report.ended || rank.member == 0) continue;
    lowest = std::min(lowest.value_or(report.pass), report.pass);
  }
  return ranks_.size() == recipe_.world ? lowest.value_or(frontier_.pass) : 0;
}

Recipe TrackedStream::recipe() const {
  Recipe recipe = recipe_;
  recipe.known = conflict_.empty() && ranks_.totals().predicted == ranks_.size();
  return recipe;
}

// When all ranks are lost the job is being restarted: the stream keeps its places until it ends.
StreamState TrackedStream::State() const {
  const bool paused = ranks_lost() == ranks_.size();
  StreamState state{.id = id_,
                    .name = name_,
                    .incarnation = incarnation_,
                    .recipe = recipe(),
                    .complete = AllRanksKnown(),
                    .conflict = conflict_,
                    .first_pass = first_pass_,
                    .first_epoch = first_epoch_,
                    .epoch_step = epoch_step_,
                    .stops_at = StopsAt(),
                    .generation = generation_};
  state.node_of_rank.resize(recipe_.world);
  for (const auto& [number, rank] : ranks_.entries()) {
    state.node_of_rank[number] = paused ? rank.last_member : rank.member;
  }
  return state;
}

Cut TrackedStream::Frontier() const {
  if (frontier_.position < pass_length_) return frontier_;
  return {.pass = frontier_.pass + 1, .position = 0};
}

Cut TrackedStream::FirstCut() const {
  if (planned_) return std::min(Frontier(), Cut{.pass = planned_->pass + 1, .position = 0});
  return frontier_.pass < first_cut_.pass + kMaxPassesBeforePlan && first_pass_ == first_cut_.pass
             ? first_cut_
             : Frontier();
}

// Passes since the stream's first one, averaged over the ranks that are reading, in positions.
double TrackedStream::Progress() const {
  const RankTotals& ranks = ranks_.totals();
  if (ranks.reading == 0) return 0;
  const double sum = static_cast<double>(ranks.passes) * static_cast<double>(pass_length_) +
                     static_cast<double>(ranks.positions);
  return sum / static_cast<double>(ranks.reading);
}

void TrackedStream::MeasureRate(MonotonicTime now) {
  const double progress = Progress();
  const bool went_back = progress < last_progress_;  // other ranks are counted than before
  const bool has_paused = now - progressed_at_ > kPause;
  if (progress > last_progress_ || went_back) progressed_at_ = now;
  last_progress_ = progress;
  const Mark here{.progress = progress, .at = now};
  if (went_back || has_paused) {
    marks_ = {here, here};
    return;
  }
  const auto is_far = [&](const Mark& mark, Duration time) {
    return now - mark.at >= time &&
           progress - mark.progress >= kRateWindow * static_cast<double>(pass_length_);
  };
  if (!is_far(marks_.front(), kFirstRateAfter)) return;
  rate_ = (progress - marks_.front().progress) / ToSeconds(now - marks_.front().at);
  if (is_far(marks_.back(), kRateTime)) marks_ = {marks_.back(), here};
}

}  // namespace optcache::coordination
