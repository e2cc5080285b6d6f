// Writes the state of a rollout as JSON and reads it back, field by field.
//
// RolloutOf reads what RolloutToJson writes. The status can be edited by people, so reading takes
// nothing for granted: a field that is missing or wrong has its default, lists are cut at their
// limit, and a reason that is not ours becomes one of ours. Fields of no value are left out, which
// keeps the object small.

#include "operator/reconcile/cacheplan/rollout_status.h"

#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/time_text.h"
#include "operator/reconcile/cacheplan/revisions.h"

namespace optcache::reconcile {
namespace {

using coordination::EpochNumbers;
using coordination::ObservedEpoch;
using coordination::PassMark;
using coordination::PassSums;
using coordination::RolloutPhase;
using coordination::RolloutState;
using kube::CountAt;
using kube::Json;

constexpr double kTenths = 10;
// What becomes a condition's reason is one of ours, even after an edit of the status.
constexpr const char* kUnknownFailure = "RolloutStopped";

constexpr std::pair<const char*, std::uint64_t PassSums::*> kSums[] = {
    {"passes", &PassSums::passes},
    {"reads", &PassSums::reads},
    {"hits", &PassSums::hits},
    {"storeBytes", &PassSums::store_bytes},
    {"movedBytes", &PassSums::moved_bytes},
    {"plannedReads", &PassSums::planned_reads},
    {"plannedHits", &PassSums::planned_hits},
    {"plannedStoreBytes", &PassSums::planned_store_bytes},
    {"plannedMovedBytes", &PassSums::planned_moved_bytes}};

std::string Time(std::int64_t seconds) {
  return FormatTime(static_cast<double>(seconds));
}

std::int64_t TimeAt(const Json& json, std::string_view pointer) {
  return std::llround(ParseTime(kube::TextAt(json, pointer)).value_or(0));
}

// "0.562" as 562; what is none is 0.
std::uint64_t DecimalAt(const Json& json, std::string_view pointer, double parts) {
  const double value = std::strtod(kube::TextAt(json, pointer).c_str(), nullptr);
  return value >= 0 && value < 1e15 ? static_cast<std::uint64_t>(std::llround(value * parts)) : 0;
}

std::optional<EpochNumbers> NumbersAt(const Json& json, std::string_view pointer) {
  const Json& numbers = kube::Find(json, pointer);
  if (!numbers.is_object()) return std::nullopt;
  return EpochNumbers{.hit_permille = DecimalAt(numbers, "/hitRatio", coordination::kPermilleInOne),
                      .store_bytes = CountAt(numbers, "/storeBytesPerEpoch"),
                      .moved_bytes = CountAt(numbers, "/movedBytesPerEpoch")};
}

Json MarksToJson(const std::vector<PassMark>& marks) {
  Json list = Json::array();
  for (const PassMark& mark : marks) {
    list.push_back({{"stream", fmt::format("{:016x}", mark.stream)},
                    {"pass", mark.pass},
                    {"passes", mark.passes}});
    if (mark.later) list.back()["later"] = true;
  }
  return list;
}

std::vector<PassMark> MarksIn(const Json& list) {
  std::vector<PassMark> marks;
  for (const Json& mark : list) {
    if (marks.size() == coordination::kMaxMarks) break;
    const std::string stream = kube::TextAt(mark, "/stream");
    StreamId id = 0;
    std::from_chars(stream.data(), stream.data() + stream.size(), id, 16);
    marks.push_back({.stream = id,
                     .pass = static_cast<PassNumber>(CountAt(mark, "/pass")),
                     .passes = static_cast<std::uint32_t>(CountAt(mark, "/passes")),
                     .later = kube::BoolAt(mark, "/later")});
  }
  return marks;
}

}  // namespace

Json NumbersToJson(const EpochNumbers& numbers) {
  return {{"hitRatio", coordination::RatioText(numbers.hit_permille)},
          {"storeBytesPerEpoch", numbers.store_bytes},
          {"movedBytesPerEpoch", numbers.moved_bytes}};
}

Json RolloutToJson(const RolloutState& state) {
  Json json = {{"phase", coordination::PhaseName(state.phase)},
               {"revision", state.revision},
               {"startTime", Time(state.start_time)},
               {"progressTime", Time(state.progress_time)},
               {"ready", state.ready},
               {"wanted", state.wanted}};
  if (state.epoch_time > 0) json["epochTime"] = Time(state.epoch_time);
  if (!state.restarted_at.empty()) json["restartedAt"] = state.restarted_at;
  if (state.tries > 0) json["tries"] = state.tries;
  if (!state.observers.empty()) json["observers"] = state.observers;
  if (!state.disturbed.empty()) json["disturbed"] = MarksToJson(state.disturbed);
  if (state.changes > 0) json["changes"] = state.changes;
  if (state.of_several) json["ofSeveral"] = true;
  if (!state.overrun.empty()) json["overrun"] = MarksToJson(state.overrun);
  if (!state.unobserved.empty()) json["unobserved"] = state.unobserved;
  if (state.uncompared) json["uncompared"] = true;
  if (state.activated) {
    json["activated"] = {{"revision", state.activated->revision}};
    if (!state.activated->up_to.empty()) json["activated"]["upTo"] = state.activated->up_to;
  }
  if (state.marks) json["marks"] = MarksToJson(*state.marks);
  if (state.sums) {
    json["sums"] = Json::object();
    for (const auto& [name, member] : kSums)
      json["sums"][name] = (*state.sums).*member;
  }
  if (!state.since.empty()) json["since"] = state.since;
  if (state.predicted) json["predicted"] = NumbersToJson(*state.predicted);
  if (!state.predicted_observers.empty()) json["predictedObservers"] = state.predicted_observers;
  if (state.forecast)
    json["forecast"] = {{"jobs", state.forecast->jobs}, {"awaited", state.forecast->awaited}};
  if (state.previous) {
    json["previous"] = NumbersToJson(state.previous->numbers);
    json["previous"]["storeBytesPerRead"] =
        coordination::TenthsText(state.previous->store_bytes_per_read_tenths);
    json["previous"]["observers"] = state.previous_observers;
  }
  if (state.failed) {
    json["failed"] = {{"revision", state.failed->revision},
                      {"reason", state.failed->reason},
                      {"message", state.failed->message},
                      {"time", Time(state.failed->time)}};
  }
  return json;
}

RolloutState RolloutOf(const Json& plan) {
  RolloutState state;
  const Json& json = kube::Find(plan, "/status/rollout");
  const auto phase = coordination::PhaseOfName(kube::TextAt(json, "/phase"));
  if (!phase) return state;
  state.current = HashOfName(kube::KeyOf(plan).name, kube::TextAt(plan, "/status/currentRevision"));
  state.phase = *phase;
  state.revision = kube::TextAt(json, "/revision");
  state.start_time = TimeAt(json, "/startTime");
  state.progress_time = TimeAt(json, "/progressTime");
  state.epoch_time = TimeAt(json, "/epochTime");
  state.ready = CountAt(json, "/ready");
  state.wanted = CountAt(json, "/wanted");
  state.restarted_at = kube::TextAt(json, "/restartedAt");
  state.tries = static_cast<std::uint32_t>(CountAt(json, "/tries"));
  state.observers = kube::TextAt(json, "/observers");
  if (const Json& disturbed = kube::Find(json, "/disturbed"); disturbed.is_array())
    state.disturbed = MarksIn(disturbed);
  state.changes = static_cast<std::uint32_t>(CountAt(json, "/changes"));
  state.of_several = kube::BoolAt(json, "/ofSeveral");
  if (const Json& overrun = kube::Find(json, "/overrun"); overrun.is_array())
    state.overrun = MarksIn(overrun);
  state.unobserved = kube::TextAt(json, "/unobserved");
  state.uncompared = kube::BoolAt(json, "/uncompared");
  if (const Json& activated = kube::Find(json, "/activated"); activated.is_object()) {
    state.activated = {.revision = kube::TextAt(activated, "/revision"),
                       .up_to = kube::TextAt(activated, "/upTo")};
  }
  if (const Json& marks = kube::Find(json, "/marks"); marks.is_array())
    state.marks = MarksIn(marks);
  if (const Json& sums = kube::Find(json, "/sums"); sums.is_object()) {
    state.sums.emplace();
    for (const auto& [name, member] : kSums)
      (*state.sums).*member = CountAt(sums, std::string("/") + name);
  }
  state.since = kube::TextAt(json, "/since");
  state.predicted = NumbersAt(json, "/predicted");
  state.predicted_observers = kube::TextAt(json, "/predictedObservers");
  if (kube::Find(json, "/forecast").is_object()) {
    state.forecast = {.jobs = kube::TextAt(json, "/forecast/jobs"),
                      .awaited = kube::BoolAt(json, "/forecast/awaited")};
  }
  if (const auto previous = NumbersAt(json, "/previous")) {
    state.previous = {
        .numbers = *previous,
        .store_bytes_per_read_tenths = DecimalAt(json, "/previous/storeBytesPerRead", kTenths)};
    state.previous_observers = kube::TextAt(json, "/previous/observers");
  }
  if (kube::Find(json, "/failed").is_object()) {
    const std::string reason = kube::TextAt(json, "/failed/reason");
    state.failed = {.revision = kube::TextAt(json, "/failed/revision"),
                    .reason = coordination::IsFailureReason(reason) ? reason : kUnknownFailure,
                    .message = kube::TextAt(json, "/failed/message"),
                    .time = TimeAt(json, "/failed/time")};
  }
  return state;
}

std::optional<EpochNumbers> ForecastInForce(const RolloutState& state,
                                            const coordination::RolloutInputs& inputs) {
  const coordination::TrialReport* const update =
      coordination::NewestTrial(inputs.nodes, coordination::UpdateTrial(state));
  const coordination::TrialReport* const current = coordination::NewestTrial(
      inputs.nodes, coordination::CurrentTrial(state.current, state.tries));
  const bool are_alike = update != nullptr && current != nullptr &&
                         update->planned == current->planned &&
                         coordination::NumbersOf(update->all) == state.predicted;
  return are_alike ? coordination::NumbersOf(current->all) : std::nullopt;
}

}  // namespace optcache::reconcile
