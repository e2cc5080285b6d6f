// Makes one step of a CachePlan's rollout and writes the status that the step leaves.
//
//   spec ─► ChooseRevision ─► RolloutOf(status) ─► Advance ─► status, events, revisions
//
// The state of the rollout lies in the status alone, and coordination::Advance is a pure function
// of it and of what nodes say. So the status is written only if the object is still of the version
// that was read: no step is lost or made twice. Where a step cannot be made, KeepView keeps what
// was written: an invalid spec, no Dataset, another plan that counts, or a leader that has not
// heard all nodes yet.

#include "operator/reconcile/cacheplan/decide.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "api/cache_plan.h"
#include "base/some_of.h"
#include "kube/conditions.h"
#include "operator/reconcile/cacheplan/plan_status.h"
#include "operator/reconcile/cacheplan/prediction.h"
#include "operator/reconcile/cacheplan/rollout_status.h"

namespace optcache::reconcile {
namespace {

using coordination::RolloutInputs;
using coordination::RolloutPhase;
using coordination::RolloutReport;
using coordination::RolloutState;
using kube::Json;

constexpr std::size_t kMaxJobs = 256;  // of status.jobs
constexpr std::size_t kMaxMachinesNamed = 3;
constexpr Duration kLookEvery = std::chrono::seconds(15);
constexpr Duration kLookOften = std::chrono::seconds(1);  // while a rollout moves
// A revision that was written is seen by then.
constexpr std::int64_t kSeenWithinSeconds = 60;

// What is predicted stands beside what is observed of the same passes: both are written, or kept,
// together.
void DescribeNumbers(const PlanObserved& observed, const RolloutReport& report,
                     PlanStatus& status) {
  Json& json = status.json();
  const Json& before = kube::Find(observed.plan, "/status/observed");
  const bool is_new = report.observed.has_value();
  const bool stays = !is_new && !report.forgets && !before.is_null();
  if (stays || !observed.view->all_known) {
    status.Keep("observed");
    return status.Keep("predicted");
  }
  if (is_new) {
    json["observed"] = NumbersToJson(report.observed->numbers);
    json["observed"]["passes"] = report.passes;
    json["observed"]["since"] = report.since;
  }
  if (report.predicted) {
    json["predicted"] = NumbersToJson(*report.predicted);
  } else if (is_new && json["observed"] == before) {
    status.Keep("predicted");  // of these very passes
  }
}

// What is predicted of the revision in force beside the update, as long as rollout.predicted
// stands.
void DescribeCurrent(const PlanObserved& observed, const RolloutState& state,
                     const RolloutInputs& inputs, Json& rollout) {
  if (!state.predicted || state.revision == state.current) return;
  const Json& before = kube::Find(observed.plan, "/status/rollout");
  const bool stands = kube::TextAt(before, "/revision") == state.revision &&
                      kube::Find(before, "/predicted") == rollout["predicted"];
  if (const auto current = ForecastInForce(state, inputs)) {
    rollout["current"] = NumbersToJson(*current);
  } else if (stands && kube::Find(before, "/current").is_object()) {
    rollout["current"] = kube::Find(before, "/current");
  }
}

void SetProgress(const PlanView& view, const RolloutReport& report, PlanStatus& status) {
  if (view.nodes_desired == 0) {
    status.Set("Available", false, "NotPlaced", "the Dataset is on no node yet");
    status.Set("Progressing", false, "NotPlaced",
               report.moving ? report.message : "the Dataset is on no node yet");
    return;
  }
  const std::string how_far =
      fmt::format("{} of {} nodes follow it", view.nodes_active, view.nodes_desired);
  status.Set("Available", view.nodes_active > 0, view.nodes_active > 0 ? "Followed" : "Waiting",
             how_far);
  status.Set("Progressing", report.progressing, report.reason, report.message);
}

void DescribeView(const PlanObserved& observed, const RolloutState& state,
                  const RolloutReport& report, PlanStatus& status) {
  const PlanView& view = *observed.view;
  Json& json = status.json();
  if (!view.digest.empty()) json["digest"] = view.digest;
  json["nodes"] = {
      {"desired", report.desired}, {"prepared", report.prepared}, {"active", report.active}};
  DescribeNumbers(observed, report, status);
  for (std::size_t i = 0; i < std::min(view.jobs.size(), kMaxJobs); ++i)
    json["jobs"].push_back(DescribeJob(view.jobs[i], observed.plan));
  if (const auto question = QuestionOf(observed.plan)) {
    if (IsAnswered(observed.plan, *question)) {
      status.Keep("prediction");
    } else {
      json["prediction"] = AnswerOf(*question, view.nodes, state.current);
    }
  }
  SetProgress(view, report, status);
}

// What nodes and jobs do not do as they should. What was found stays until it is over: a new leader
// needs as long as the one before to find it.
void SetDeviation(const std::string& before, const PlanView& view, const RolloutState& state,
                  PlanStatus& status) {
  const bool settled =
      state.phase == RolloutPhase::kStopped || state.phase == RolloutPhase::kComplete;
  if (settled && state.failed) {
    const bool in_force = state.failed->revision == state.current;
    return status.Set(
        "Degraded", true, "RolloutStopped",
        fmt::format("{} {}: {}: {}", state.failed->revision,
                    in_force ? "is in force, but could not be derived again" : "is not in force",
                    state.failed->reason, state.failed->message));
  }
  if (!view.nodes_that_differ.empty()) {
    return status.Set("Degraded", true, "PlansDiffer",
                      "these nodes have derived other plans than the rest from the same inputs: " +
                          SomeOf(view.nodes_that_differ) + ": please report this");
  }
  if (before == "PlansDiffer" &&
      !std::ranges::all_of(view.nodes, &coordination::RolloutNode::planned))
    return;
  if (!view.drifted.empty()) {
    return status.Set(
        "Degraded", true, "NodesDiffer",
        "these nodes do not follow the revision that they should: " + SomeOf(view.drifted));
  }
  if (before == "NodesDiffer" && view.some_drift) return;
  if (!view.missing.empty()) {
    return status.Set("Degraded", true, "NodesMissing",
                      "the nodes of these machines do not report to the operator: " +
                          SomeOf(view.missing, kMaxMachinesNamed));
  }
  if (before == "NodesMissing" && view.some_are_absent) return;
  for (const PlanJob& job : view.jobs) {
    if (!job.differs.empty())
      return status.Set("Degraded", true, "SamplerDiffers", job.name + ": " + job.differs);
  }
  if (!std::ranges::all_of(view.jobs, &PlanJob::order_known)) {
    return status.Set("Degraded", true, "OrderUnknown",
                      "some jobs read in an order that is not known: see jobs");
  }
  status.Set("Degraded", false, "AsWanted", "what is read is planned");
}

void SetDegraded(const PlanObserved& observed, bool valid, const RolloutState* state,
                 PlanStatus& status) {
  if (!valid) {
    return status.Set("Degraded", true, "Invalid",
                      "what was in force before stays, the defaults where nothing was");
  }
  const std::string before = kube::ConditionOf(observed.plan, "Degraded").reason;
  if (state != nullptr) return SetDeviation(before, *observed.view, *state, status);
  // Nothing is known, as after a change of the leader: what was found before stays.
  if (before.empty() || before == "Invalid")
    status.Set("Degraded", false, "AsWanted", "what is read is planned");
}

// Is there a view to go by? A new leader's, which lacks nodes and jobs, is enough for the first
// revision alone.
bool IsKnown(const PlanObserved& observed) {
  return observed.view && (observed.view->all_known || RolloutOf(observed.plan).current.empty());
}

// Keeps what was written, as nothing is done here for the rollout.
void KeepView(PlanStatus& status) {
  for (const char* field : {"currentRevision", "updateRevision", "collisionCount", "rollout",
                            "digest", "nodes", "predicted", "observed", "jobs", "prediction"})
    status.Keep(field);
}

kube::EventText Event(kube::EventType type, const char* reason, std::string note) {
  return {.type = type, .reason = reason, .action = "Rollout", .note = std::move(note)};
}

void TellOfStep(const std::string& plan, const RolloutState& before, const RolloutState& after,
                const RolloutInputs& inputs, Decision& decision) {
  using enum RolloutPhase;
  const bool same = before.phase == after.phase && before.revision == after.revision;
  if (before.current.empty() || same) return;
  const std::string update = RevisionName(plan, after.revision);
  if (after.phase == kPrepare) {
    const bool again = after.revision == after.current;
    std::string note =
        again ? update + " is derived again"
              : fmt::format("{} takes the place of {}", update, RevisionName(plan, after.current));
    decision.events.push_back(Event(kube::EventType::kNormal, "RolloutStarted", std::move(note)));
  } else if (before.phase == kPrepare && after.phase == kActivate) {
    const std::string node = coordination::NodeThatCannotCompare(before, inputs);
    if (node.empty()) return;
    decision.events.push_back(
        Event(kube::EventType::kWarning, "NodesNotCompared",
              fmt::format("{} is activated, compared without {}", update, node)));
  } else if (after.phase == kComplete && after.failed) {
    decision.events.push_back(
        Event(kube::EventType::kWarning, "RolloutStopped",
              fmt::format("{} is in force, but could not be derived again: {}: {}", update,
                          after.failed->reason, after.failed->message)));
  } else if (after.phase == kComplete) {
    const bool unobserved = !after.unobserved.empty();
    decision.events.push_back(
        unobserved
            ? Event(kube::EventType::kWarning, "RolloutUnobserved",
                    fmt::format("{} is in force; nothing was observed of it, as these jobs "
                                "ended no epoch: {}",
                                update, after.unobserved))
            : Event(kube::EventType::kNormal, "RolloutComplete",
                    update + (after.uncompared ? " is in force; it was not compared with the "
                                                 "revision before"
                                               : " is in force")));
  } else if (after.phase == kGoBack && after.failed) {
    decision.events.push_back(
        Event(kube::EventType::kWarning, "RolledBack",
              fmt::format("nodes go back to {}: {}: {}", RevisionName(plan, after.current),
                          after.failed->reason, after.failed->message)));
  } else if (after.phase == kStopped && after.failed) {
    decision.events.push_back(
        Event(kube::EventType::kWarning, "RolloutStopped",
              fmt::format("{}: {}: {}", update, after.failed->reason, after.failed->message)));
  }
}

// Is the content of the revision in force gone, so that nobody can go on with it?
bool IsLost(const PlanObserved& observed, const RolloutState& state) {
  if (state.current.empty() || FindRevision(observed.revisions, state.current) != nullptr)
    return false;
  return static_cast<std::int64_t>(observed.now) - state.start_time > kSeenWithinSeconds;
}

std::set<std::string> RevisionsInUse(const RolloutState& state, const std::string& update,
                                     const PlanView& view) {
  std::set<std::string> used = {state.current, state.revision, update};
  if (state.activated) used.insert(state.activated->revision);
  for (const coordination::RolloutNode& node : view.nodes)
    used.insert(node.revision);
  return used;
}

// That one of the revisions names which a rollout compares.
std::vector<std::string> NamedJobs(const api::CachePlanSpec& spec, const Revision* current) {
  std::vector<std::string> names;
  for (const api::PlanJobSpec& job : spec.jobs)
    names.push_back(job.name);
  if (current == nullptr) return names;
  for (const Json& job : kube::Items(current->content, "/jobs"))
    names.push_back(kube::TextAt(job, "/name"));
  return names;
}

// The next step of the rollout, and what is to be done for it.
RolloutState Step(const PlanObserved& observed, const api::CachePlanSpec& spec, PlanStatus& status,
                  Decision& decision) {
  const std::string plan = kube::KeyOf(observed.plan).name;
  RevisionChoice update =
      ChooseRevision(observed.plan, api::RevisionContent(spec), observed.revisions,
                     kube::NumberAt(observed.plan, "/status/collisionCount").value_or(0));
  if (update.change) decision.applies.push_back(*std::move(update.change));
  RolloutInputs inputs = InputsOf(*observed.view, observed.now);
  inputs.revision = update.hash;
  inputs.is_tried = spec.retention != coordination::Retention::kOptimal;
  inputs.knobs = spec.rollout;
  RolloutState before = RolloutOf(observed.plan);
  if (IsLost(observed, before)) {
    decision.events.push_back(
        Event(kube::EventType::kWarning, "RevisionLost",
              fmt::format("the content of {}, which was in force, is gone: {} is in force at once",
                          RevisionName(plan, before.current), RevisionName(plan, update.hash))));
    before = {};
  }
  inputs.jobs = NamedJobs(spec, FindRevision(observed.revisions, before.current));
  RolloutState state = coordination::Advance(before, inputs);
  TellOfStep(plan, before, state, inputs, decision);
  Json& json = status.json();
  json["currentRevision"] = RevisionName(plan, state.current);
  json["updateRevision"] = RevisionName(plan, update.hash);
  json["collisionCount"] = update.collisions;
  json["rollout"] = RolloutToJson(state);
  DescribeCurrent(observed, state, inputs, json["rollout"]);
  const RolloutReport report = coordination::ReportOf(state, inputs);
  DescribeView(observed, state, report, status);
  decision.deletes =
      SurplusRevisions(observed.plan, observed.revisions,
                       RevisionsInUse(state, update.hash, *observed.view), spec.revision_history);
  const auto question = QuestionOf(observed.plan);
  const bool asks = question && !IsAnswered(observed.plan, *question);
  decision.requeue_after = report.moving || asks ? kLookOften : kLookEvery;
  return state;
}

}  // namespace

RolloutInputs InputsOf(const PlanView& view, double now) {
  return {.nodes = view.nodes,
          .streams = view.streams,
          .memory = view.memory,
          .all_known = view.all_known,
          .passes = view.passes,
          .mean_sample_bytes = view.mean_sample_bytes,
          .now = static_cast<std::int64_t>(now)};
}

Decision DecideCachePlan(const PlanObserved& observed) {
  Decision decision;
  if (kube::IsBeingDeleted(observed.plan)) return decision;
  PlanStatus status(observed);
  std::optional<RolloutState> state;
  const Result<api::CachePlanSpec> spec = api::ParseCachePlanSpec(observed.plan);
  if (!spec) {
    KeepView(status);
    status.Set("Invalid", true, "Invalid", spec.error().message());
    status.Set("Available", false, "Invalid", spec.error().message());
  } else if (!observed.dataset_exists) {
    KeepView(status);
    status.Set("Available", false, "NoDataset",
               "there is no Dataset " + spec->dataset + " in this namespace");
  } else if (observed.followed != kube::KeyOf(observed.plan).name) {
    KeepView(status);
    status.Set("Available", false, "AnotherPlan",
               "the Dataset follows CachePlan " + observed.followed + ": remove one of them");
  } else if (IsKnown(observed)) {
    state = Step(observed, *spec, status, decision);
  } else {
    KeepView(status);
    status.Keep("observedGeneration");  // nobody has looked at the spec
    if (observed.view) decision.requeue_after = kLookOften;
    if (kube::ConditionOf(observed.plan, "Available").reason.empty())
      status.Set("Available", false, "Waiting", "the Dataset is not indexed yet");
  }
  SetDegraded(observed, spec.has_value(), state ? &*state : nullptr, status);
  Change change = status.Finish();
  // A step is made from the state that was seen, and from no other; nor may what is only kept take
  // a later state back.
  if (change.object["status"].contains("rollout"))
    change.resource_version = kube::ResourceVersionOf(observed.plan);
  decision.applies.push_back(std::move(change));
  return decision;
}

}  // namespace optcache::reconcile
