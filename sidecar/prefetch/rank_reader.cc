// Turns passes that a rank announces into the present pass, and predicts the next one.
//
// Begin replaces the present pass. If it is the one that was predicted, with the same span, `next_`
// becomes `current_` with all that is staged for it; else both are made again, and what was staged
// for the prediction is lost. LearnFrom finds out where passes end: two in a row that end early at
// about the same place are believed, until one ends elsewhere. `place_` counts the reads of all
// passes, so the pace of a rank (read_pace.h) goes on over the border of a pass. Lists of ids that
// are handed over come in parts, and count once they are whole. A list that grows goes into its
// pass at once.

#include "sidecar/prefetch/rank_reader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "handoff/layout.h"
#include "sampler/recipe_text.h"

namespace optcache::sidecar {
namespace {

// A pass that leaves out less than this share of its list is whole, and passes whose ends differ by
// less end at the same place.
constexpr std::uint64_t kWholePassTolerance = 64;

// Where the pass after `pass` begins, if that begins at `place`.
ReadPace::Place PlaceAfter(const Pass& pass, ReadPace::Place place) {
  const std::uint64_t begin = pass.span().begin;
  return place + std::max(pass.end(), begin) - begin;
}

}  // namespace

void RankReader::End() {
  ended_ = true;
  if (current_) current_->UnstageAll();
  next_.reset();
  traces_.clear();
}

void RankReader::Reopen(Attachment attachment, ClientId owner) {
  const bool same =
      !ended_ && attachment.recipe == attachment_.recipe && attachment.known == attachment_.known;
  const bool traced = attachment_.traced;
  const bool says_the_same = same && attachment.pass_reads == attachment_.pass_reads;
  attachment_ = std::move(attachment);
  if (!says_the_same) {
    usual_end_ = attachment_.pass_reads;
    last_end_ = 0;
  }
  owner_ = owner;
  if (std::exchange(ended_, false)) first_pass_ = 0;
  if (same && attachment_.traced == traced) return;
  traces_.clear();
  current_.reset();
  next_.reset();
}

void RankReader::Begin(const PassSpan& span, std::optional<std::uint32_t> crc) {
  if (current_ && current_->span() == span) {  // said again after a reconnect
    crc_ = crc;
    return;
  }
  if (current_) epoch_step_ = span.epoch - current_->span().epoch;
  if (current_ && current_->span().pass != span.pass) LearnFrom(*current_);
  if (current_) place_ = PlaceAfter(*current_, place_);
  pace_->SkipTo(place_, std::max<std::uint64_t>(attachment_.behind, Pass::kReorderMin));
  if (next_ && next_->span() == span) {
    current_ = std::move(next_);
  } else {
    next_.reset();
    current_ = std::make_unique<Pass>(span, attachment_.behind);
    if (!attachment_.known && !attachment_.traced) current_->Distrust();
  }
  LimitReads(*current_);
  first_pass_ = std::max(first_pass_, span.pass + 1);
  std::erase_if(traces_, [&span](const auto& trace) { return trace.first < span.pass; });
  crc_ = crc;
  wait_ = Duration::zero();
}

// How far workers may ask beyond the place where the trainer ends, and how unequal ends may be.
std::uint64_t RankReader::Slack(const PassSpan& span) const {
  return std::max<std::uint64_t>(attachment_.behind, (span.end - span.begin) / kWholePassTolerance);
}

void RankReader::LearnFrom(const Pass& ended) {
  const PassSpan& span = ended.span();
  const std::uint64_t end = ended.low_water();
  if (end == span.begin && !ended.went_on()) return;  // nobody has read it
  const std::uint64_t slack = Slack(span);
  const auto ends_at = [end, slack](std::uint64_t index) {
    return index != 0 && std::max(end, index) - std::min(end, index) <= slack;
  };
  const bool early = end + slack < span.end;
  const std::uint64_t before = std::exchange(last_end_, early ? end : 0);
  const bool has_said = usual_end_ != 0 && usual_end_ == attachment_.pass_reads;
  if (!ended.went_on() && (has_said || ends_at(usual_end_))) return;
  usual_end_ = early && ends_at(before) ? std::max(end, before) : 0;
}

void RankReader::LimitReads(Pass& pass) const {
  if (usual_end_ > pass.span().begin) pass.StopAt(usual_end_, Slack(pass.span()));
}

std::uint64_t RankReader::pass_reads() const {
  return current_ && current_->went_on() ? 0 : usual_end_;
}

bool RankReader::Predict(PredictWhen when) {
  if (ended_ || next_ || !current_ || !current_->predicted()) return false;
  const PassSpan& now = current_->span();
  if (end_ != 0 && now.pass + 1 >= end_) return false;
  const std::uint64_t half = now.begin + (std::max(current_->end(), now.begin) - now.begin) / 2;
  if (when == PredictWhen::kHalfStaged && current_->frontier() < half) return false;
  PassSpan then{.pass = now.pass + 1, .epoch = now.epoch + epoch_step_, .begin = 0, .end = now.end};
  if (attachment_.traced) {
    const auto trace = Trace(then.pass);
    if (trace == nullptr) return false;
    then.end = trace->size();
  }
  next_ = std::make_unique<Pass>(then, attachment_.behind);
  LimitReads(*next_);
  return true;
}

ReadPace::Place RankReader::PlaceOf(const Pass& pass, std::uint64_t index) const {
  const bool is_next = &pass == next_.get() && current_ != nullptr;
  return (is_next ? PlaceAfter(*current_, place_) : place_) + index - pass.span().begin;
}

Pass* RankReader::Find(PassNumber number) const {
  if (current_ && current_->span().pass == number) return current_.get();
  if (next_ && next_->span().pass == number) return next_.get();
  return nullptr;
}

Pass* RankReader::Find(const PassSpan& span) const {
  Pass* pass = Find(span.pass);
  return pass != nullptr && pass->span() == span ? pass : nullptr;
}

Pass* RankReader::WithoutOrder() const {
  if (ended_) return nullptr;
  for (Pass* pass : {current_.get(), next_.get()}) {
    const bool wanted = pass != nullptr && pass->trusted() && pass->order() == nullptr;
    if (!wanted) continue;
    if (!attachment_.traced || Trace(pass->span().pass) != nullptr) return pass;
  }
  return nullptr;
}

Status RankReader::TakeTrace(PassNumber pass, std::uint64_t first, std::uint64_t length,
                             std::span<const SampleId> ids) {
  const PassNumber present = current_ ? current_->span().pass : first_pass_;
  if (ended_ || !attachment_.traced || pass < present || pass > present + 1 + kTracesAhead) {
    return {Code::kInvalidArgument,
            fmt::format("a list of pass {} came in pass {}: only those that follow soon are taken",
                        pass, present)};
  }
  if (length > handoff::kMaxTraceIds ||
      first + ids.size() > (length == 0 ? handoff::kMaxTraceIds : length)) {
    return {Code::kInvalidArgument,
            fmt::format("a list of {} ids has some from index {} on: at most {} are taken", length,
                        first, handoff::kMaxTraceIds)};
  }
  if (length == 0) {
    if (Pass* const growing = Find(pass)) return growing->Append(first, ids);
    return {Code::kInvalidArgument, "a list grows in a pass that has not begun"};
  }
  if (next_ && next_->span().pass == pass) next_.reset();  // it was another
  HandedOver& trace = traces_[pass];
  if (first == 0) {
    trace = {.length = length, .ids = std::make_shared<std::vector<SampleId>>()};
  }
  if (trace.ids == nullptr || trace.length != length || trace.ids->size() != first) {
    traces_.erase(pass);
    return {Code::kInvalidArgument, fmt::format("parts of the list of pass {} are missing", pass)};
  }
  trace.ids->insert(trace.ids->end(), ids.begin(), ids.end());
  return OkStatus();
}

std::shared_ptr<const std::vector<SampleId>> RankReader::Trace(PassNumber pass) const {
  const auto found = traces_.find(pass);
  const bool whole = found != traces_.end() && found->second.ids->size() == found->second.length;
  return whole ? found->second.ids : nullptr;
}

std::vector<PassNumber> RankReader::TracedPasses() const {
  std::vector<PassNumber> passes;
  for (const auto& [pass, trace] : traces_)
    passes.push_back(pass);
  return passes;
}

std::optional<std::string> RankReader::Verify() {
  if (!current_ || !current_->predicted() || !crc_ || *crc_ == current_->order()->crc) {
    return std::nullopt;
  }
  const auto& recipe = attachment_.recipe;
  std::string what = fmt::format(
      "the order replayed from {} (seed {}, epoch {}, rank {} of {}) has CRC {:08x}, the training "
      "process reads one with CRC {:08x}",
      sampler::KindName(recipe.kind), recipe.seed, current_->span().epoch, attachment_.rank,
      recipe.world, current_->order()->crc, *crc_);
  current_->Distrust();
  next_.reset();
  return what;
}

wire::StreamAttach RankReader::AttachMessage() const {
  const auto& recipe = attachment_.recipe;
  return {.dataset = attachment_.dataset->key(),
          .dataset_name = attachment_.dataset_name,
          .stream = attachment_.stream,
          .stream_name = attachment_.stream_name,
          .incarnation = attachment_.incarnation,
          .sampler_kind = static_cast<std::uint8_t>(recipe.kind),
          .size = recipe.size,
          .seed = recipe.seed,
          .world = recipe.world,
          .rank = attachment_.rank,
          .shuffle = recipe.shuffle,
          .drop_last = recipe.drop_last,
          .modern_randperm = recipe.modern_randperm,
          .base_seed = static_cast<std::uint8_t>(recipe.base_seed),
          .tail_permutation = recipe.tail_permutation,
          .known = attachment_.known && sampler::IsBasic(recipe),
          .passes = end_};
}

std::optional<wire::StreamOrder> RankReader::OrderMessage() const {
  if (!attachment_.known || sampler::IsBasic(attachment_.recipe)) return std::nullopt;
  return wire::StreamOrder{.stream = attachment_.stream,
                           .rank = attachment_.rank,
                           .recipe = sampler::FormatRecipe(attachment_.recipe)};
}

wire::StreamPassEnd RankReader::PassEndMessage() const {
  return {.stream = attachment_.stream, .rank = attachment_.rank, .reads = pass_reads()};
}

wire::StreamProgress RankReader::ProgressMessage() const {
  wire::StreamProgress progress{.stream = attachment_.stream,
                                .rank = attachment_.rank,
                                .order_known = attachment_.known,
                                .ended = ended_};
  if (current_) {
    const PassSpan& span = current_->span();
    progress.pass = span.pass;
    progress.epoch = span.epoch;
    progress.start = PositionOf(span.begin);
    // What workers have asked for beyond the end was not read by the trainer.
    const std::uint64_t read = std::min(current_->low_water(), current_->end());
    progress.position = PositionOf(std::max(read, span.begin));
    progress.wait_us = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(wait_).count());
    progress.order_known = current_->trusted();
  }
  return progress;
}

}  // namespace optcache::sidecar
