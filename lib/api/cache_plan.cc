// Reads a CachePlan's spec, and writes the part of it that makes a revision.
//
// ReadContent and RevisionContent are the same fields in the two directions. The content has every
// default written out and the jobs by name, so equal wishes have equal text, and the text is what a
// revision is named by. Rollout knobs are not part of it: changing them makes no revision. Shares
// are kept in whole millionths.

#include "api/cache_plan.h"

#include <algorithm>
#include <limits>

#include "api/fields.h"
#include "api/limits.h"
#include "base/time_text.h"
#include "base/whole_number.h"

namespace optcache::api {
namespace {

constexpr std::size_t kMaxShortText = 64;
constexpr std::int64_t kMaxWorld = 65'536;
constexpr std::int64_t kMaxEpochs = 1'000'000'000;
constexpr std::int64_t kMaxNodesOfPlan = 100'000;
constexpr std::int64_t kMaxPasses = 1000;
constexpr std::int64_t kMaxHistory = 1000;
constexpr std::int64_t kMaxDeadlineSeconds = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMillionthDigits = 6;

constexpr Names<bool, 2> kStrategies{{{"Staged", false}, {"AllAtOnce", true}}};
constexpr Names<bool, 2> kActivations{{{"EpochBoundary", true}, {"Now", false}}};

// In millionths; digits beyond them are cut off.
std::optional<std::uint64_t> ParseShare(const std::string& text) {
  const std::size_t dot = std::min(text.find('.'), text.size());
  std::string fraction = dot == text.size() ? "0" : text.substr(dot + 1);
  const bool digits =
      ParseWholeNumber<std::uint64_t>(fraction.substr(0, kMillionthDigits)).has_value() &&
      fraction.find_first_not_of("0123456789") == std::string::npos;
  fraction.resize(kMillionthDigits, '0');
  const auto whole = ParseWholeNumber<std::uint64_t>(text.substr(0, dot));
  const auto part = ParseWholeNumber<std::uint64_t>(fraction);
  if (!digits || !part || !whole || *whole > 1) return std::nullopt;
  const std::uint64_t all = *whole * 1'000'000 + *part;
  return all > 1'000'000 ? std::nullopt : std::optional(all);
}

void ReadShare(Fields& fields, const char* name, std::uint64_t& millionths) {
  std::string text;
  fields.Read(name, text, kMaxShortText);
  if (!fields.Has(name)) return;
  const std::optional<std::uint64_t> share = ParseShare(text);
  if (!share) return fields.Fault(name, "'" + text + "', allowed: a number from 0 to 1");
  millionths = *share;
}

// A count or a percentage, as Kubernetes' maxUnavailable.
void ReadMaxUnavailable(Fields& rollout, MaxUnavailable& out) {
  constexpr const char* kField = "maxUnavailable";
  std::string text;
  rollout.ReadIntOrText(kField, text, kMaxShortText);
  if (!rollout.Has(kField)) return;
  const bool percent = text.ends_with('%');
  const std::string_view digits = std::string_view(text).substr(0, text.size() - (percent ? 1 : 0));
  const auto amount = ParseWholeNumber<std::uint64_t>(
      digits, percent ? 100U : static_cast<std::uint64_t>(kMaxNodesOfPlan));
  if (amount.value_or(0) == 0) {
    return rollout.Fault(kField, "'" + text + "', allowed: a count from 1 to " +
                                     std::to_string(kMaxNodesOfPlan) +
                                     ", or a share from 1% to 100%");
  }
  out = {.amount = *amount, .percent = percent};
}

void ReadRollout(Fields& rollout, RolloutKnobs& knobs) {
  rollout.Read("strategy", knobs.all_at_once, kStrategies);
  auto partition = static_cast<std::int64_t>(knobs.partition);
  rollout.Read("partition", partition, 0, kMaxNodesOfPlan);
  knobs.partition = static_cast<std::uint64_t>(partition);
  ReadMaxUnavailable(rollout, knobs.max_unavailable);
  rollout.Read("activateAt", knobs.at_epoch_boundary, kActivations);
  rollout.Read("paused", knobs.paused);
  rollout.Read("acknowledge", knobs.acknowledge);
  rollout.Read("progressDeadlineSeconds", knobs.progress_deadline_seconds, 1, kMaxDeadlineSeconds);
  rollout.Read("epochDeadlineSeconds", knobs.epoch_deadline_seconds, 1, kMaxDeadlineSeconds);
  rollout.Read("restartedAt", knobs.restarted_at, kMaxShortText);
  if (!knobs.restarted_at.empty() && !ParseTime(knobs.restarted_at))
    rollout.Fault("restartedAt", "not a time as \"2027-01-15T08:00:00Z\"");
  rollout.In("abort", [&](Fields& abort) {
    ReadShare(abort, "whenBelowPredictedBy", knobs.below_predicted_millionths);
    ReadShare(abort, "whenWorseThanPreviousBy", knobs.worse_than_previous_millionths);
    abort.Read("after", knobs.after, 1, kMaxPasses);
  });
}

void ReadJobs(Fields& spec, std::vector<PlanJobSpec>& jobs) {
  spec.ForEach("jobs", kMaxJobsOfPlan, [&](Fields& item) {
    PlanJobSpec job;
    item.NeedSubdomain("name", job.name);
    item.In("sampler", [&](Fields& sampler) {
      sampler.Read("kind", job.sampler, kJobSamplers);
      sampler.Read("seed", job.seed, std::numeric_limits<std::int64_t>::min(),
                   std::numeric_limits<std::int64_t>::max());
      sampler.Read("worldSize", job.world, 1, kMaxWorld);
      sampler.Read("epochs", job.epochs, 1, kMaxEpochs);
      sampler.Read("shuffle", job.shuffle);
      sampler.Read("dropLast", job.drop_last);
    });
    if (std::ranges::find(jobs, job.name, &PlanJobSpec::name) != jobs.end())
      item.Fault("name", "'" + job.name + "' is there twice");
    jobs.push_back(std::move(job));
  });
}

// Exactly one of its fields.
void ReadGoal(Fields& goal, std::optional<dataset::CapacityGoal>& out) {
  const auto read = [&](const char* name, auto parse) {
    std::string text;
    goal.ReadIntOrText(name, text, kMaxShortText);
    if (!goal.Has(name)) return;
    const auto parsed = parse(text);
    if (!parsed) return goal.Fault(name, parsed.error().message());
    out = *parsed;
  };
  read("waiting", dataset::ParseWaitingGoal);
  read("cost", dataset::ParseCostGoal);
  if (goal.Has("waiting") == goal.Has("cost")) goal.Fault("cost", "set either waiting or cost");
}

// What a revision consists of.
void ReadContent(Fields& spec, CachePlanSpec& plan) {
  spec.Read("retention", plan.retention, kRetentions);
  spec.Read("objective", plan.objective, kObjectives);
  ReadJobs(spec, plan.jobs);
}

void SortJobs(CachePlanSpec& plan) {
  std::ranges::sort(plan.jobs, {}, &PlanJobSpec::name);
}

}  // namespace

CachePlanSpec ReadCachePlanSpec(Fields& resource) {
  CachePlanSpec plan;
  resource.NeedIn("spec", "write spec: {dataset: …}", [&](Fields& spec) {
    spec.NeedSubdomain("dataset", plan.dataset, kMaxResourceName);
    ReadContent(spec, plan);
    spec.In("rollout", [&](Fields& rollout) { ReadRollout(rollout, plan.rollout); });
    spec.In("goal", [&](Fields& goal) { ReadGoal(goal, plan.goal); });
    spec.Read("revisionHistoryLimit", plan.revision_history, 0, kMaxHistory);
  });
  return plan;
}

Result<CachePlanSpec> ParseCachePlanSpec(const nlohmann::json& object) {
  Errors errors;
  Fields resource(object, "", errors);
  CheckResourceName(resource);
  CachePlanSpec plan = ReadCachePlanSpec(resource);
  RETURN_IF_ERROR(errors.status());
  SortJobs(plan);
  return plan;
}

nlohmann::json RevisionContent(const CachePlanSpec& spec) {
  nlohmann::json jobs = nlohmann::json::array();
  for (const PlanJobSpec& job : spec.jobs) {
    jobs.push_back({{"name", job.name},
                    {"sampler",
                     {{"dropLast", job.drop_last},
                      {"epochs", job.epochs},
                      {"kind", NameIn(kJobSamplers, job.sampler)},
                      {"seed", job.seed},
                      {"shuffle", job.shuffle},
                      {"worldSize", job.world}}}});
  }
  return {{"jobs", std::move(jobs)},
          {"objective", NameIn(kObjectives, spec.objective)},
          {"retention", NameIn(kRetentions, spec.retention)}};
}

Result<CachePlanSpec> ParseRevisionContent(const nlohmann::json& content) {
  Errors errors;
  Fields spec(content, "spec", errors);
  CachePlanSpec plan;
  ReadContent(spec, plan);
  RETURN_IF_ERROR(errors.status());
  SortJobs(plan);
  return plan;
}

}  // namespace optcache::api
