// Reads a CachePlan's spec, and writes the part of it that makes a revision.
//
// ReadContent and RevisionContent are the same fields in the two directions. The content has every
// default written out and the jobs by name, so equal wishes have equal text, and the text is what a
// revision is named by. Rollout knobs are not part of it: changing them makes no revision. Shares
// are kept in whole millionths.

#include "operator/api/cache_plan_types.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/time_text.h"
#include "base/whole_number.h"
#include "coordination/codec.h"
#include "operator/api/fields.h"
#include "sampler/recipe.h"

namespace optcache::api {
namespace {

using coordination::RolloutKnobs;

constexpr std::size_t kMaxPlanName = 63;
constexpr std::size_t kMaxJobName = 253;
constexpr std::size_t kMaxShortText = 64;
constexpr std::int64_t kMaxWorld = 65'536;
constexpr std::int64_t kMaxEpochs = 1'000'000'000;
constexpr std::int64_t kMaxNodesOfPlan = 100'000;
constexpr std::int64_t kMaxPasses = 1000;
constexpr std::int64_t kMaxHistory = 1000;
constexpr std::size_t kMillionthDigits = 6;

constexpr Names<JobSampler, 2> kSamplers{{{"TorchDistributed", JobSampler::kTorchDistributed},
                                          {"TorchRandom", JobSampler::kTorchRandom}}};
constexpr Names<bool, 2> kStrategies{{{"Staged", false}, {"AllAtOnce", true}}};
constexpr Names<bool, 2> kActivations{{{"EpochBoundary", true}, {"Now", false}}};

template <typename Enum, std::size_t N>
void ReadName(Fields& fields, const char* name, const Names<Enum, N>& names, Enum& out) {
  fields.Read(name, std::span<const std::pair<std::string_view, Enum>>(names), out);
}

template <typename T>
void ReadCount(Fields& fields, const char* name, std::int64_t min, std::int64_t max, T& out) {
  auto number = static_cast<std::int64_t>(out);
  fields.Read(name, min, max, number);
  out = static_cast<T>(number);
}

// "0.05", in millionths; digits beyond them are cut off.
void ReadShare(Fields& fields, const char* name, std::uint64_t& millionths) {
  std::string text;
  fields.Read(name, kMaxShortText, text);
  if (text.empty()) return;
  const std::size_t dot = std::min(text.find('.'), text.size());
  std::string fraction = dot == text.size() ? "0" : text.substr(dot + 1);
  const bool digits =
      ParseWholeNumber<std::uint64_t>(fraction.substr(0, kMillionthDigits)).has_value() &&
      fraction.find_first_not_of("0123456789") == std::string::npos;
  fraction.resize(kMillionthDigits, '0');
  const auto whole = ParseWholeNumber<std::uint64_t>(text.substr(0, dot));
  const auto part = ParseWholeNumber<std::uint64_t>(fraction);
  const std::uint64_t all = whole && part ? *whole * 1'000'000 + *part : 0;
  if (!digits || !whole || *whole > 1 || all > 1'000'000)
    return fields.Fault(name, "\"" + text + "\" is no number from 0 to 1");
  millionths = all;
}

void ReadMaxUnavailable(Fields& rollout, coordination::MaxUnavailable& out) {
  std::string text;
  rollout.ReadIntOrText("maxUnavailable", kMaxShortText, text);
  if (text.empty()) return;
  const bool percent = text.ends_with('%');
  if (percent) text.pop_back();
  const auto amount = ParseWholeNumber<std::uint64_t>(text);
  if (!amount || *amount < 1 ||
      *amount > (percent ? 100U : static_cast<std::uint64_t>(kMaxNodesOfPlan)))
    return rollout.Fault("maxUnavailable", "allowed: a count from 1, or a share from 1% to 100%");
  out = {.amount = *amount, .percent = percent};
}

void ReadRollout(Fields rollout, RolloutKnobs& knobs) {
  ReadName(rollout, "strategy", kStrategies, knobs.all_at_once);
  ReadName(rollout, "activateAt", kActivations, knobs.at_epoch_boundary);
  ReadCount(rollout, "partition", 0, kMaxNodesOfPlan, knobs.partition);
  ReadMaxUnavailable(rollout, knobs.max_unavailable);
  rollout.Read("paused", knobs.paused);
  rollout.Read("acknowledge", knobs.acknowledge);
  ReadCount(rollout, "progressDeadlineSeconds", 1, std::numeric_limits<std::int32_t>::max(),
            knobs.progress_deadline_seconds);
  ReadCount(rollout, "epochDeadlineSeconds", 1, std::numeric_limits<std::int32_t>::max(),
            knobs.epoch_deadline_seconds);
  rollout.Read("restartedAt", kMaxShortText, knobs.restarted_at);
  if (!knobs.restarted_at.empty() && !ParseTime(knobs.restarted_at))
    rollout.Fault("restartedAt", "not a time as \"2027-01-15T08:00:00Z\"");
  Fields abort = rollout.In("abort");
  ReadShare(abort, "whenBelowPredictedBy", knobs.below_predicted_millionths);
  ReadShare(abort, "whenWorseThanPreviousBy", knobs.worse_than_previous_millionths);
  ReadCount(abort, "after", 1, kMaxPasses, knobs.after);
}

void ReadJobs(Fields& spec, std::vector<PlanJobSpec>& jobs) {
  spec.ForEach("jobs", coordination::kMaxJobsOfPlan, [&](Fields fields) {
    PlanJobSpec job;
    fields.Need("name", kMaxJobName, job.name);
    Fields sampler = fields.In("sampler");
    ReadName(sampler, "kind", kSamplers, job.sampler);
    sampler.Read("seed", std::numeric_limits<std::int64_t>::min(),
                 std::numeric_limits<std::int64_t>::max(), job.seed);
    sampler.Read("worldSize", 1, kMaxWorld, job.world);
    sampler.Read("epochs", 1, kMaxEpochs, job.epochs);
    sampler.Read("shuffle", job.shuffle);
    sampler.Read("dropLast", job.drop_last);
    if (std::ranges::find(jobs, job.name, &PlanJobSpec::name) != jobs.end())
      fields.Fault("name", "\"" + job.name + "\" is there twice");
    jobs.push_back(std::move(job));
  });
  std::ranges::sort(jobs, {}, &PlanJobSpec::name);
}

// Exactly one of its fields.
void ReadGoal(const Fields& spec, CachePlanSpec& plan) {
  Fields goal = spec.In("goal");
  std::string waiting;
  std::string cost;
  goal.Read("waiting", kMaxShortText, waiting);
  goal.Read("cost", kMaxShortText, cost);
  if (waiting.empty() && cost.empty()) return;
  if (!waiting.empty() && !cost.empty()) {
    goal.Fault("cost", "set either waiting or cost");
    return;
  }
  const auto parsed =
      cost.empty() ? dataset::ParseWaitingGoal(waiting) : dataset::ParseCostGoal(cost);
  if (parsed) {
    plan.goal = *parsed;
  } else {
    goal.Fault(cost.empty() ? "waiting" : "cost", parsed.error().message());
  }
}

// What a revision consists of.
void ReadContent(Fields& spec, CachePlanSpec& plan) {
  ReadName(spec, "retention", kRetentions, plan.retention);
  ReadName(spec, "objective", kObjectives, plan.objective);
  ReadJobs(spec, plan.jobs);
}

}  // namespace

Result<CachePlanSpec> ParseCachePlanSpec(const kube::Json& object) {
  ValidationErrors validation_errors;
  Fields spec(kube::Find(object, "/spec"), "spec", validation_errors);
  CachePlanSpec plan;
  // It becomes the value of a label, and part of the names of revisions.
  if (kube::KeyOf(object).name.size() > kMaxPlanName)
    validation_errors.Add("metadata.name", "longer than 63 characters");
  spec.Need("dataset", kMaxPlanName, plan.dataset);
  ReadContent(spec, plan);
  ReadRollout(spec.In("rollout"), plan.rollout);
  ReadGoal(spec, plan);
  spec.Read("revisionHistoryLimit", 0, kMaxHistory, plan.revision_history);
  RETURN_IF_ERROR(validation_errors.status());
  return plan;
}

kube::Json RevisionContent(const CachePlanSpec& spec) {
  kube::Json jobs = kube::Json::array();
  for (const PlanJobSpec& job : spec.jobs) {
    jobs.push_back({{"name", job.name},
                    {"sampler",
                     {{"dropLast", job.drop_last},
                      {"epochs", job.epochs},
                      {"kind", NameIn(kSamplers, job.sampler)},
                      {"seed", job.seed},
                      {"shuffle", job.shuffle},
                      {"worldSize", job.world}}}});
  }
  return {{"jobs", std::move(jobs)},
          {"objective", NameIn(kObjectives, spec.objective)},
          {"retention", NameIn(kRetentions, spec.retention)}};
}

Result<CachePlanSpec> ParseRevisionContent(const kube::Json& content) {
  ValidationErrors validation_errors;
  Fields spec(content, "spec", validation_errors);
  CachePlanSpec plan;
  ReadContent(spec, plan);
  RETURN_IF_ERROR(validation_errors.status());
  return plan;
}

std::vector<coordination::JobRecipe> RecipesOf(const std::vector<PlanJobSpec>& jobs) {
  std::vector<coordination::JobRecipe> recipes;
  recipes.reserve(jobs.size());
  for (const PlanJobSpec& job : jobs) {
    // What does not concern the kind keeps its default, as clients announce it.
    const bool distributed = job.sampler == JobSampler::kTorchDistributed;
    const auto kind = distributed   ? sampler::Kind::kTorchDistributed
                      : job.shuffle ? sampler::Kind::kTorchRandom
                                    : sampler::Kind::kSequential;
    recipes.push_back({.job = job.name,
                       .recipe = {.sampler_kind = static_cast<std::uint8_t>(kind),
                                  .seed = kind == sampler::Kind::kSequential ? 0 : job.seed,
                                  .world = static_cast<std::uint32_t>(job.world),
                                  .shuffle = !distributed || job.shuffle,
                                  .drop_last = distributed && job.drop_last,
                                  .passes = static_cast<std::uint32_t>(job.epochs)}});
  }
  return recipes;
}

}  // namespace optcache::api
