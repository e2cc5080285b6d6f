#include "headspace/report_json.h"

#include <nlohmann/json.hpp>

namespace optcache::headspace {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

template <typename T>
OrderedJson OrNull(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson();
}

OrderedJson JsonOf(const StepTime& time) {
  return {{"seconds", time.seconds},
          {"plusMinus", time.plus_minus},
          {"steps", time.steps},
          {"samples", time.samples},
          {"bytes", time.bytes},
          {"waitedSeconds", time.waited},
          {"hitRatio", OrNull(time.hit_ratio)}};
}

OrderedJson JsonOf(const Gain& gain) {
  return {{"seconds", gain.seconds},        {"plusMinus", gain.plus_minus},
          {"resolved", gain.resolved},      {"speedup", gain.speedup},
          {"speedupLow", gain.speedup_low}, {"speedupHigh", OrNull(gain.speedup_high)}};
}

OrderedJson JsonOf(const RunHours& run) {
  return {{"steps", run.steps},
          {"announced", run.announced},
          {"hoursNow", run.hours_now},
          {"hoursFree", run.hours_free},
          {"hoursSaved", run.hours_saved}};
}

std::optional<double> NumberIn(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

StepTime TimeIn(const Json& json) {
  return {.seconds = json.at("seconds"),
          .plus_minus = json.at("plusMinus"),
          .steps = json.at("steps"),
          .samples = json.at("samples"),
          .bytes = json.at("bytes"),
          .waited = json.at("waitedSeconds"),
          .hit_ratio = NumberIn(json, "hitRatio")};
}

Gain GainIn(const Json& json) {
  return {.seconds = json.at("seconds"),
          .plus_minus = json.at("plusMinus"),
          .resolved = json.at("resolved"),
          .speedup = json.at("speedup"),
          .speedup_low = json.at("speedupLow"),
          .speedup_high = NumberIn(json, "speedupHigh")};
}

RunHours RunIn(const Json& json) {
  return {.steps = json.at("steps"),
          .announced = json.at("announced"),
          .hours_now = json.at("hoursNow"),
          .hours_free = json.at("hoursFree"),
          .hours_saved = json.at("hoursSaved")};
}

Report ReportIn(const Json& json) {
  Report report{.message = json.at("message"),
                .loader = json.at("loader"),
                .ranks = json.at("ranks"),
                .options = {.warmup_steps = json.at("wanted").at("warmupSteps"),
                            .steps = json.at("wanted").at("steps"),
                            .free_steps = json.at("wanted").at("freeSteps"),
                            .run_steps = json.at("wanted").at("runSteps")},
                .measured_steps = json.at("measuredSteps"),
                .free_steps = json.at("freeSteps"),
                .what_if = {}};
  if (json.contains("now")) report.now = TimeIn(json.at("now"));
  if (json.contains("free")) report.free = TimeIn(json.at("free"));
  if (json.contains("gain")) report.gain = GainIn(json.at("gain"));
  if (json.contains("run")) report.run = RunIn(json.at("run"));
  for (const Json& point : json.at("whatIf")) {
    report.what_if.push_back({.hit_ratio = point.at("hitRatio"),
                              .seconds = NumberIn(point, "seconds"),
                              .seconds_in_turn = NumberIn(point, "secondsInTurn")});
  }
  return report;
}

}  // namespace

std::string ReportAsJson(const Report& report) {
  const Options& wanted = report.options;
  OrderedJson root = {{"version", 1},
                      {"state", StateName(report.state)},
                      {"message", report.message},
                      {"results", "not-for-use"},
                      {"loader", report.loader},
                      {"ranks", report.ranks},
                      {"wanted",
                       {{"warmupSteps", wanted.warmup_steps},
                        {"steps", wanted.steps},
                        {"freeSteps", wanted.free_steps},
                        {"runSteps", wanted.run_steps}}},
                      {"measuredSteps", report.measured_steps},
                      {"freeSteps", report.free_steps}};
  if (report.now) root["now"] = JsonOf(*report.now);
  if (report.free) root["free"] = JsonOf(*report.free);
  if (report.gain) root["gain"] = JsonOf(*report.gain);
  if (report.run && report.run->steps != 0) root["run"] = JsonOf(*report.run);
  root["whatIf"] = OrderedJson::array();
  for (const WhatIf& point : report.what_if) {
    root["whatIf"].push_back({{"hitRatio", point.hit_ratio},
                              {"seconds", OrNull(point.seconds)},
                              {"secondsInTurn", OrNull(point.seconds_in_turn)}});
  }
  return root.dump(2) + "\n";
}

Result<Report> ParseReport(std::string_view json) {
  try {
    const Json root = Json::parse(json);
    if (root.at("version") != 1) {
      return Error(Code::kInvalidArgument,
                   "the report is of another version; use optcache and sidecar of one release");
    }
    const auto state = StateOf(root.at("state").get<std::string>());
    if (!state) return Error(Code::kInvalidArgument, "the report has a state that is not known");
    Report report = ReportIn(root);
    report.state = *state;
    return report;
  } catch (const Json::exception& error) {
    return Error(Code::kInvalidArgument,
                 std::string("this is no report of headspace: ") + error.what());
  }
}

}  // namespace optcache::headspace
