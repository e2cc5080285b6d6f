// Says which revisions a plan is fixed with: what members follow, and what they try beside it.
//
// The idea: one set of streams is planned by several revisions. TakeRevisions takes the streams
// with the Dataset's own recipes; another revision, of an update or a trial, has only the recipes
// in which it differs (ToState). What ranks announce of their order goes before what a revision
// says of their job (RecipeBy).
//
// Invariants: a trial keeps the inputs with which it was first asked for (AsksForTrial). A change
// that asks members for nothing new makes no plan: IsAssignedAs compares what each member is to do,
// and NameRevisions then takes over the names alone.

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "coordinator/coordinator.h"

namespace optcache::coordination {
namespace {

// Do members do the same by both?
bool SameRules(const RevisionState& one, const RevisionState& other) {
  return one.retention == other.retention && one.objective == other.objective;
}

std::vector<Recipe> RecipesBy(const RevisionState& revision,
                              const std::vector<StreamState>& streams) {
  std::vector<Recipe> recipes;
  for (const StreamState& stream : StreamsOf(revision, streams))
    recipes.push_back(stream.recipe);
  return recipes;
}

// `own`, and those of `all` that it does not name.
std::vector<JobRecipe> WithJobs(std::vector<JobRecipe> own, const std::vector<JobRecipe>& all) {
  for (const JobRecipe& job : all) {
    const bool named = std::ranges::find(own, job.job, &JobRecipe::job) != own.end();
    if (!named && own.size() < kMaxJobsOfPlan) own.push_back(job);
  }
  return own;
}

// Trials are compared: a job that one of them names is expected by all that it is compared with.
std::vector<JobRecipe> JobsOf(const TrialSpec& trial, const std::vector<TrialSpec>& trials) {
  std::vector<JobRecipe> jobs = trial.revision.jobs;
  for (const TrialSpec& other : trials) {
    if (other.on_request == trial.on_request) jobs = WithJobs(std::move(jobs), other.revision.jobs);
  }
  return jobs;
}

}  // namespace

// The order of a stream of the dataset: what its ranks announce, else what `jobs` says.
Recipe Coordinator::RecipeBy(const std::vector<JobRecipe>& jobs, const DatasetEntry& dataset,
                             const StreamState& stream) {
  const TrackedStream& tracked = dataset.registry.streams().at(stream.id);
  const Recipe* const by_job = RecipeOf(jobs, stream);
  if (by_job == nullptr || tracked.AnnouncesOrder() || !stream.conflict.empty())
    return tracked.recipe();
  Recipe recipe = *by_job;
  recipe.size = dataset.spec.samples;
  return recipe;
}

// Those that can be planned, in the order that the dataset's own revision gives them.
std::vector<StreamState> Coordinator::WholeStreams(const DatasetEntry& dataset) {
  std::vector<StreamState> streams;
  for (const auto& [id, stream] : dataset.registry.streams()) {
    if (!stream.AllRanksKnown()) continue;
    StreamState& state = streams.emplace_back(stream.State());
    if (stream.TracesHold()) state.traces = dataset.registry.traces().PassesOf(id);
    state.recipe = RecipeBy(dataset.spec.jobs, dataset, state);
  }
  return streams;
}

// What `wanted` changes of the dataset's own revision.
RevisionState Coordinator::ToState(const RevisionSpec& wanted, const DatasetEntry& dataset,
                                   const std::vector<StreamState>& streams) {
  RevisionState state{
      .name = wanted.name, .retention = wanted.retention, .objective = wanted.objective};
  for (const StreamState& stream : streams) {
    Recipe recipe = RecipeBy(wanted.jobs, dataset, stream);
    if (recipe != stream.recipe)
      state.recipes.push_back({.stream = stream.id, .recipe = std::move(recipe)});
  }
  return state;
}

// `inputs` has its capacities.
void Coordinator::TakeRevisions(const DatasetEntry& dataset, PlanInputs& inputs) const {
  const DatasetSpec& spec = dataset.spec;
  inputs.assignment.own = {
      .name = spec.revision, .retention = spec.retention, .objective = spec.objective};
  std::vector<MemberId> updated;
  for (const MemberCapacity& capacity : inputs.capacities) {
    const auto member = members_.entries().find(capacity.member);
    const bool is_updated =
        spec.update && member != members_.entries().end() &&
        std::ranges::binary_search(spec.update->nodes, member->second.member.name);
    if (is_updated) updated.push_back(capacity.member);
  }
  const bool is_planned =
      spec.retention == Retention::kOptimal ||
      (!updated.empty() && spec.update->revision.retention == Retention::kOptimal);
  if (!is_planned && updated.empty() && spec.trials.empty()) return;
  std::vector<StreamState> streams = WholeStreams(dataset);
  if (!updated.empty()) {
    inputs.assignment.update = {.revision = ToState(spec.update->revision, dataset, streams),
                                .members = std::move(updated)};
  }
  DCHECK(spec.trials.size() <= kMaxTrials);
  for (const TrialSpec& trial : spec.trials) {
    TrialState& state = inputs.trials.emplace_back();
    state = {.id = trial.id,
             .revision = ToState(trial.revision, dataset, streams),
             .expected = ExpectedStreams(JobsOf(trial, spec.trials), spec.name, streams,
                                         inputs.capacities)};
    for (StreamState& expected : state.expected)
      expected.recipe.size = spec.samples;
  }
  if (is_planned || !spec.trials.empty()) inputs.streams = std::move(streams);
}

// What a trial is derived from stays as it was when it was first asked for.
bool Coordinator::AsksForTrial(const DatasetEntry& dataset, const PlanInputs& inputs) {
  return std::ranges::any_of(inputs.trials, [&](const TrialState& trial) {
    return std::ranges::find(dataset.planned_trials, trial.id, &TrialState::id) ==
           dataset.planned_trials.end();
  });
}

// Does every member do as the plan in force says, whatever the revisions are called? Then their
// names alone have changed: members that followed an update follow the Dataset's own revision now.
bool Coordinator::IsAssignedAs(const DatasetEntry& dataset, const PlanInputs& inputs) {
  if (inputs.assignment == dataset.planned_assignment) return true;
  // Of all members a few changes.
  std::set<std::pair<const RevisionState*, const RevisionState*>> changes;
  for (const MemberCapacity& capacity : inputs.capacities) {
    changes.emplace(&FollowedBy(capacity.member, inputs.assignment),
                    &FollowedBy(capacity.member, dataset.planned_assignment));
  }
  return std::ranges::all_of(changes, [&](const auto& change) {
    const auto& [now, before] = change;
    return SameRules(*now, *before) &&
           RecipesBy(*now, inputs.streams) == RecipesBy(*before, dataset.planned_streams);
  });
}

// To be called where IsAssignedAs.
void Coordinator::NameRevisions(DatasetEntry& dataset, const PlanInputs& inputs) {
  dataset.planned_assignment = inputs.assignment;
  for (StreamState& planned : dataset.planned_streams) {
    const auto now = std::ranges::find(inputs.streams, planned.id, &StreamState::id);
    if (now != inputs.streams.end()) planned.recipe = now->recipe;
  }
  std::erase_if(dataset.planned_trials, [&](const TrialState& trial) {
    return std::ranges::find(inputs.trials, trial.id, &TrialState::id) == inputs.trials.end();
  });
}

void Coordinator::AddRevisions(const DatasetEntry& dataset, DatasetStatus& status) {
  status.revision = dataset.planned_assignment.own.name;
  if (dataset.planned_assignment.update)
    status.update_revision = dataset.planned_assignment.update->revision.name;
}

}  // namespace optcache::coordination
