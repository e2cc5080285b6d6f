// Takes each rank of one stream through the phases of a StepClock, and hands out held samples in
// the free one.
//
// The first rank that has warmed up decides which stream is measured. In the phase kGathering,
// samples that are handed out are held, in a part of the arena, and Instead gives out one of about
// the right size, in turn. Staging rests while what was staged before is used up and while nothing
// is fetched. Each StepClock belongs to one rank; a new pass of another stream interrupts all of
// them. The measurement ends when every rank that is attached is done; `finished_` then holds the
// report, and everything that was held is let go.

#include "sidecar/clients/headspace_meter.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/log.h"
#include "sidecar/prefetch/prefetcher.h"

namespace optcache::sidecar {
namespace {

using headspace::Phase;
using headspace::State;
using headspace::StepClock;

// A sample stands for those whose length differs by this part of it at most.
constexpr ByteCount kAlikePart = 8;
constexpr std::uint32_t kAheadMax = 4096;  // batches

// How many batches the loader's workers may ask for before the first is consumed.
std::uint32_t AheadOf(const RankReader& reader, std::size_t samples) {
  return std::min<std::uint32_t>(
      reader.attachment().behind / static_cast<std::uint32_t>(std::max<std::size_t>(samples, 1)),
      kAheadMax);
}

}  // namespace

HeadspaceMeter::HeadspaceMeter(const headspace::Options& options, ReaderTable& readers,
                               ByteCount arena_bytes)
    : options_(options), readers_(readers), held_max_(arena_bytes / kHeldPart) {}

bool HeadspaceMeter::OnAsk(RankReader& reader, std::size_t samples, MonotonicTime now) {
  const RankKey key(reader.attachment().stream, reader.attachment().rank);
  if (finished_) reader.HoldStaging(false);
  if (finished_) return false;
  const PassNumber pass = reader.current() == nullptr ? 0 : reader.current()->span().pass;
  if (stream_ != 0 && stream_ != key.first) {
    OnOther(key, pass);
    return false;
  }
  StepClock& clock = ranks_.try_emplace(key, options_).first->second;
  const Phase before = clock.phase();
  clock.OnAsk(
      {.at = now,
       .pass = pass,
       .ahead = AheadOf(reader, samples),
       .staged_max =
           (Prefetcher::MayStage(reader, Prefetcher::Ranks(readers_)) + samples - 1) / samples});
  if (clock.phase() != before) OnPhase(reader, clock, before, samples);
  FinishIfAllHave();
  reader.HoldStaging(HoldsStaging(key, reader, clock));
  return !finished_ && clock.phase() == Phase::kFree;
}

// Training stands still while a rank of its job validates.
void HeadspaceMeter::OnOther(const RankKey& rank, PassNumber pass) {
  const auto [known, is_new] = others_.try_emplace(rank, pass);
  if (!is_new && std::exchange(known->second, pass) == pass) return;
  for (auto& [measured, clock] : ranks_)
    clock.Interrupt();
}

// While what was staged before is used up, and while nothing is fetched.
bool HeadspaceMeter::HoldsStaging(const RankKey& rank, const RankReader& reader,
                                  const StepClock& clock) {
  if (finished_) return false;
  if (clock.phase() == Phase::kDraining && reader.staged() == 0) drained_.insert(rank);
  return clock.phase() == Phase::kFree ||
         (clock.phase() == Phase::kDraining && !drained_.contains(rank));
}

void HeadspaceMeter::Choose(const RankReader& reader) {
  stream_ = reader.attachment().stream;
  stream_name_ = reader.attachment().stream_name;
  std::erase_if(ranks_, [this](const auto& rank) { return rank.first.first != stream_; });
  Log(LogLevel::kInfo, "headspace: measuring",
      {{"stream", stream_name_}, {"options", headspace::FormatOptions(options_)}});
}

void HeadspaceMeter::OnPhase(const RankReader& reader, const StepClock& clock, Phase before,
                             std::size_t samples) {
  if (before == Phase::kWarmUp) {
    announced_steps_ = std::max(announced_steps_, StepsOf(reader, samples));
    if (stream_ == 0) Choose(reader);
  }
  if (clock.phase() == Phase::kFree && held_.empty()) {
    GiveUp(
        fmt::format("No sample could be held in a quarter of the arena of {}, which others fill or "
                    "which is too small: start with a larger --arena.",
                    FormatBytes(held_max_ * kHeldPart)));
    return;
  }
  if (clock.phase() != Phase::kFree && before != Phase::kFree) return;
  Log(LogLevel::kInfo,
      clock.phase() == Phase::kFree ? "headspace: the same samples from here on, at once"
                                    : "headspace: samples as always again",
      {{"stream", stream_name_}, {"rank", reader.attachment().rank}});
}

BufferRef HeadspaceMeter::Instead(ByteCount size) {
  CHECK(!held_.empty());
  ++given_;
  const auto begin = held_.lower_bound(size - size / kAlikePart);
  const auto end = held_.upper_bound(size + size / kAlikePart);
  const auto alike = static_cast<std::uint64_t>(std::distance(begin, end));
  if (alike > 0) return std::next(begin, static_cast<std::ptrdiff_t>(turn_++ % alike))->second;
  if (begin == held_.end()) return std::prev(begin)->second;
  if (begin == held_.begin()) return begin->second;
  const auto smaller = std::prev(begin);
  return (size - smaller->first < begin->first - size ? smaller : begin)->second;
}

void HeadspaceMeter::OnAnswer(const RankReader& reader, const std::vector<Served>& samples,
                              std::uint64_t hits, Duration waited) {
  if (finished_) return;
  const auto found = ranks_.find({reader.attachment().stream, reader.attachment().rank});
  if (found == ranks_.end()) return;
  headspace::Answer answer{.samples = samples.size(), .hits = hits, .bytes = 0, .waited = waited};
  const bool gathers = found->second.phase() == Phase::kGathering;
  for (const Served& sample : samples) {
    if (sample.buffer == nullptr) continue;
    const ByteCount size = sample.buffer->bytes().size();
    answer.bytes += size;
    if (!gathers || !sample.buffer->slot() || size > held_max_ - held_bytes_) continue;
    held_.emplace(size, sample.buffer);
    held_bytes_ += size;
  }
  found->second.OnAnswer(answer);
}

bool HeadspaceMeter::Attached(const RankKey& rank) const {
  const RankReader* reader = readers_.Find(readers_.Find(rank.first, rank.second));
  return reader != nullptr && !reader->ended();
}

void HeadspaceMeter::FinishIfAllHave() {
  if (finished_ || stream_ == 0) return;
  bool any = false;
  for (const auto& [key, clock] : ranks_) {
    if (clock.phase() == Phase::kDone) {
      any = true;
    } else if (Attached(key)) {
      return;
    }
  }
  if (!any) return;
  finished_ = Report();
  held_.clear();
  Log(LogLevel::kInfo, "headspace: measured",
      {{"stream", stream_name_},
       {"speedup", finished_->gain ? finished_->gain->speedup : 1},
       {"report", finished_->message}});
}

void HeadspaceMeter::GiveUp(std::string why) {
  headspace::Report report = Report();
  report.state = State::kEndedEarly;
  report.message = std::move(why);
  finished_ = std::move(report);
  held_.clear();
  Log(LogLevel::kWarning, "headspace: not measured",
      {{"stream", stream_name_}, {"reason", finished_->message}});
}

State HeadspaceMeter::StateNow() const {
  if (stream_ == 0) return State::kWaiting;
  bool done = false;
  bool attached = false;
  bool measures = false;
  for (const auto& [key, clock] : ranks_) {
    if (clock.phase() == Phase::kDone) {
      done = true;
    } else if (Attached(key)) {
      attached = true;
      measures = measures || clock.phase() != Phase::kFree;
    }
  }
  if (attached) return measures ? State::kMeasuring : State::kFree;
  return done ? State::kDone : State::kEndedEarly;
}

headspace::Report HeadspaceMeter::Report() const {
  if (finished_) return *finished_;
  headspace::Seen seen{.state = StateNow(),
                       .why = "The job reads no more; measure fewer steps, or a longer run.",
                       .loader = stream_name_,
                       .ranks = {},
                       .announced_steps = announced_steps_};
  for (const auto& [key, clock] : ranks_) {
    const bool counts = seen.state != State::kDone || clock.phase() == Phase::kDone;
    if (stream_ != 0 && counts) seen.ranks.push_back(&clock);
    if (stream_ == 0) seen.warmup_steps = std::max(seen.warmup_steps, clock.left_out());
  }
  return headspace::MakeReport(seen, options_);
}

std::uint64_t HeadspaceMeter::StepsOf(const RankReader& reader, std::size_t samples) const {
  const Pass* const pass = reader.current();
  if (pass == nullptr || samples == 0 || pass->end() <= pass->span().begin) return 0;
  const std::uint64_t reads = pass->end() - pass->span().begin;
  return reader.passes() * ((reads + samples - 1) / samples);
}

std::string HeadspaceMeter::Notice() const {
  return fmt::format(
      "headspace is measured in this run: for {} steps, samples are replaced by others of the "
      "dataset. What it trains is not for use",
      options_.free_steps);
}

void HeadspaceMeter::VisitCounters(const CounterVisitor& visitor) const {
  const headspace::Report report = Report();
  visitor(MetricKind::kCounter, "optcache_headspace_samples_total", {},
          static_cast<double>(given_));
  visitor(MetricKind::kGauge, "optcache_headspace_steps", {{"phase", "now"}},
          static_cast<double>(report.measured_steps));
  visitor(MetricKind::kGauge, "optcache_headspace_steps", {{"phase", "free"}},
          static_cast<double>(report.free_steps));
  if (!report.gain) return;
  visitor(MetricKind::kGauge, "optcache_headspace_step_seconds", {{"phase", "now"}},
          report.now->seconds);
  visitor(MetricKind::kGauge, "optcache_headspace_step_seconds", {{"phase", "free"}},
          report.free->seconds);
  visitor(MetricKind::kGauge, "optcache_headspace_speedup_ratio", {}, report.gain->speedup);
}

}  // namespace optcache::sidecar
