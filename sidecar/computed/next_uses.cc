#include "sidecar/computed/next_uses.h"

#include <algorithm>
#include <optional>

namespace optcache::sidecar {
namespace {

constexpr Duration kStepAtFirst = std::chrono::milliseconds(1);
// So that no time overflows: two passes of kPassLengthMax last for 272 years then.
constexpr Duration kStepMax = std::chrono::seconds(1);
constexpr std::uint64_t kReadsToMeasure = 16;  // fewer say nothing of the speed

bool HasRepeats(const RankPass& order) {
  const auto same = [&order](std::uint32_t a, std::uint32_t b) {
    return order.ids[a] == order.ids[b];
  };
  return std::ranges::adjacent_find(order.by_id, same) != order.by_id.end();
}

}  // namespace

bool NextUses::Reads(const RankReader& reader) const {
  return !reader.ended() && reader.attachment().dataset == &dataset_ && reader.current() != nullptr;
}

NextUses::Seen NextUses::Signature() const {
  Seen seen;
  for (const auto& [id, reader] : readers_.readers()) {
    if (!Reads(reader)) continue;
    const Pass* next = reader.next();
    seen.insert(seen.end(),
                {id, reader.current()->span().pass, reader.current()->predicted() ? 1U : 0U,
                 next == nullptr || !next->predicted() ? 0 : std::uint64_t{next->span().pass} + 1});
  }
  return seen;
}

void NextUses::Refresh() {
  seen_ = Signature();
  std::erase_if(paces_, [this](const auto& entry) {
    const auto found = readers_.readers().find(entry.first);
    return found == readers_.readers().end() || !Reads(found->second);
  });
  for (const auto& [id, reader] : readers_.readers()) {
    if (Reads(reader)) Measure(id, reader);
  }
  steady_ = FindSteady();
}

void NextUses::Measure(ReaderId id, const RankReader& reader) {
  // Who has just come is taken to be as fast as another.
  const Duration usual = paces_.empty() ? kStepAtFirst : paces_.begin()->second.step;
  const PassNumber pass = reader.current()->span().pass;
  const MonotonicTime now = alarms_.Now();
  const auto [entry, is_new] =
      paces_.try_emplace(id, Pace{.pass = pass, .begun = now, .step = usual});
  Pace& pace = entry->second;
  if (pace.reads >= kReadsToMeasure) {
    pace.step = std::clamp<Duration>((now - pace.begun) / static_cast<std::int64_t>(pace.reads),
                                     Duration(1), kStepMax);
  }
  if (pace.pass != pass) pace = {.pass = pass, .begun = now, .step = pace.step};
  pace.anchor = now;
  pace.read_at_anchor = pace.reads;
}

bool NextUses::FindSteady() const {
  std::optional<StreamId> stream;
  bool one = true;
  ForEachPass([&](const RankReader& reader, const Pace&, const Pass& pass, std::uint64_t) {
    one = one && stream.value_or(reader.attachment().stream) == reader.attachment().stream;
    stream = reader.attachment().stream;
    one =
        one && pass.order()->by_id.size() == pass.order()->ids.size() && !HasRepeats(*pass.order());
  });
  for (const auto& [id, reader] : readers_.readers()) {
    if (Reads(reader) && !reader.current()->predicted()) return false;
  }
  return one && stream;
}

void NextUses::NoteRead(ReaderId reader) {
  const auto found = paces_.find(reader);
  if (found != paces_.end()) ++found->second.reads;
}

// `action(reader, pace, pass, reads before the pass's first index)`, for what is predicted.
template <typename Action>
void NextUses::ForEachPass(const Action& action) const {
  for (const auto& [id, reader] : readers_.readers()) {
    const auto pace = paces_.find(id);
    if (!Reads(reader) || pace == paces_.end()) continue;
    const Pass& current = *reader.current();
    if (current.predicted()) action(reader, pace->second, current, 0);
    const Pass* next = reader.next();
    const std::uint64_t length =
        std::max(current.end(), current.span().begin) - current.span().begin;
    if (next != nullptr && next->predicted()) action(reader, pace->second, *next, length);
  }
}

UseTime NextUses::TimeOf(const Pace& pace, std::uint64_t reads) const {
  const auto ahead = static_cast<std::int64_t>(reads - pace.read_at_anchor);
  return (pace.anchor.time_since_epoch() + ahead * pace.step).count();
}

UseTime NextUses::Of(SampleId id) const {
  UseTime first = kNoUse;
  ForEachPass([&](const RankReader&, const Pace& pace, const Pass& pass, std::uint64_t before) {
    const std::optional<std::uint64_t> index = pass.FindUnasked(id);
    if (index && *index < pass.end())
      first = std::min(first, TimeOf(pace, before + *index - pass.span().begin));
  });
  return first;
}

std::vector<UseTime> NextUses::OfAll() const {
  std::vector<UseTime> all(dataset_.samples(), kNoUse);
  ForEachPass([&](const RankReader&, const Pace& pace, const Pass& pass, std::uint64_t before) {
    const auto& ids = pass.order()->ids;
    const std::uint64_t end = std::min<std::uint64_t>(pass.end(), ids.size());
    for (std::uint64_t i = pass.span().begin; i < end; ++i) {
      if (pass.asked(i) || ids[i] >= all.size()) continue;
      all[ids[i]] = std::min(all[ids[i]], TimeOf(pace, before + i - pass.span().begin));
    }
  });
  return all;
}

}  // namespace optcache::sidecar
