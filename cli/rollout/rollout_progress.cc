// Tells one line of a rollout: from what keeps it from being looked at, down to its phase.
//
// TellRollout asks in this order: is the CachePlan in use, has the operator seen this generation,
// is the deadline over, and then what its phase says (one function for each phase). The first that
// fits makes the progress. Pauses, acknowledgements and degradation are added to it afterwards. All
// of it follows from the status, so a script that looks once and one that waits are told the same.

#include "cli/rollout/rollout_progress.h"

#include <algorithm>

#include <fmt/format.h>

namespace optcache::cli {
namespace {

using kube::ConditionStatus;
using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kMaxPassesNamed = 3;
constexpr std::uint64_t kBarWidth = 20;

std::string UpdateHash(const PlanResource& plan) {
  if (!plan.phase_revision.empty() && plan.phase != "GoBack") return plan.phase_revision;
  return HashOfRevision(plan.update);
}

// "pass 7 of vision/resnet/imagenet/train (43 %)".
std::string DescribePass(const PlanJob& job) {
  const std::string share = ShareOfPass(job);
  return fmt::format("pass {} of {}{}", job.pass, job.name,
                     share.empty() ? "" : fmt::format(" ({})", share));
}

std::string DescribePasses(const PlanResource& plan) {
  std::vector<std::string> passes;
  std::size_t more = 0;
  for (const PlanJob& job : plan.jobs) {
    if (!job.is_awaited) continue;
    if (passes.size() < kMaxPassesNamed) {
      passes.push_back(DescribePass(job));
    } else {
      ++more;
    }
  }
  const std::string rest = more == 0 ? "" : fmt::format(" and of {} more jobs", more);
  return fmt::format("{}{}", fmt::join(passes, ", "), rest);
}

RolloutProgress Waiting(const PlanResource& plan, const std::string& what, std::uint64_t done = 0,
                        std::uint64_t all = 0) {
  return {
      .line = fmt::format("Waiting for cacheplan \"{}\" rollout to finish: {}...", plan.name, what),
      .done = done,
      .all = all};
}

RolloutProgress Failed(std::string line) {
  return {.outcome = RolloutOutcome::kFailed, .line = std::move(line)};
}

RolloutProgress OfStopped(const PlanResource& plan, const std::vector<PlanRevision>& revisions) {
  const PlanFailure failed = plan.failed.value_or(PlanFailure{});
  const bool went_back = failed.reason == "BelowPredicted" || failed.reason == "WorseThanPrevious";
  RolloutProgress progress =
      Failed(fmt::format("cacheplan \"{}\" rollout of {} was stopped: {}: {}; {} {}", plan.name,
                         DescribeRevision(revisions, failed.revision), failed.reason,
                         failed.message, went_back ? "went back to" : "still in force:",
                         DescribeRevision(revisions, HashOfRevision(plan.current))));
  progress.advice = fmt::format(
      "To take the change back, run: kubectl optcache rollout undo {0} -n {1}\n"
      "To try it again, run: kubectl optcache rollout restart {0} -n {1}",
      plan.name, plan.name_space);
  return progress;
}

// What is in force stays so: there is nothing to take back.
RolloutProgress OfNotDerivedAgain(const PlanResource& plan,
                                  const std::vector<PlanRevision>& revisions) {
  RolloutProgress progress =
      Failed(fmt::format("cacheplan \"{}\": {} is in force, but could not be derived again: {}: {}",
                         plan.name, DescribeRevision(revisions, HashOfRevision(plan.current)),
                         plan.failed->reason, plan.failed->message));
  progress.advice = fmt::format("To try it again, run: kubectl optcache rollout restart {} -n {}",
                                plan.name, plan.name_space);
  return progress;
}

RolloutProgress OfPrepare(const PlanResource& plan, const std::vector<PlanRevision>& revisions) {
  if (plan.progressing.reason == "PredictedWorse") {
    // Nothing goes on by itself: who waits for it would wait for ever.
    RolloutProgress progress = Failed(
        fmt::format("cacheplan \"{}\" rollout is held, {} is predicted to be worse: {}", plan.name,
                    DescribeRevision(revisions, UpdateHash(plan)), plan.progressing.message));
    progress.advice = fmt::format(
        "To continue, run: kubectl patch cacheplan {0} -n {1} --type=merge -p "
        "'{{\"spec\":{{\"rollout\":{{\"acknowledge\":true}}}}}}'\n"
        "Set it to false again when the rollout is complete: it applies to every later change.\n"
        "To take the change back, run: kubectl optcache rollout undo {0} -n {1}",
        plan.name, plan.name_space);
    return progress;
  }
  return Waiting(plan, fmt::format("{} of {} nodes prepared", plan.prepared, plan.desired),
                 plan.prepared, plan.desired);
}

RolloutProgress OfActivate(const PlanResource& plan, const std::vector<PlanRevision>& revisions) {
  const std::string follow = fmt::format("{} of {} nodes follow {}", plan.active, plan.desired,
                                         DescribeRevision(revisions, UpdateHash(plan)));
  if (plan.progressing.reason == "Partitioned") {
    return {.outcome = RolloutOutcome::kSucceeded,
            .line = fmt::format("partitioned rollout of cacheplan \"{}\" complete: {}", plan.name,
                                follow),
            .advice = "To continue, lower spec.rollout.partition.",
            .done = plan.active,
            .all = plan.desired};
  }
  std::string what = follow;
  if (plan.progressing.reason == "EpochAwaited") {
    const std::string passes = DescribePasses(plan);
    what +=
        passes.empty() ? ", waiting for the end of an epoch" : ", waiting for the end of " + passes;
  }
  return Waiting(plan, what, plan.active, plan.desired);
}

RolloutProgress OfObserve(const PlanResource& plan) {
  std::string passes;
  for (const PlanJob& job : plan.jobs) {
    if (&job - plan.jobs.data() >= static_cast<std::ptrdiff_t>(kMaxPassesNamed)) break;
    passes += (passes.empty() ? "" : ", ") + DescribePass(job);
  }
  if (plan.jobs.size() > kMaxPassesNamed)
    passes += fmt::format(" and of {} more jobs", plan.jobs.size() - kMaxPassesNamed);
  const std::uint64_t wanted = plan.wanted_passes * plan.marked_streams;
  const std::uint64_t counted = std::min(plan.marked_passes, wanted);
  const std::string how_far =
      wanted == 0 ? "" : fmt::format(", {} of {} passes observed", counted, wanted);
  const std::string follow =
      plan.active < plan.desired
          ? fmt::format("{} of {} nodes follow it", plan.active, plan.desired)
          : fmt::format("all {} nodes follow it", plan.active);
  return Waiting(
      plan, fmt::format("{}{}{}", follow, how_far, passes.empty() ? "" : ", observing " + passes),
      counted, wanted);
}

RolloutProgress OfGoBack(const PlanResource& plan, const std::vector<PlanRevision>& revisions) {
  const std::string current = DescribeRevision(revisions, HashOfRevision(plan.current));
  const std::string why =
      plan.failed ? fmt::format("{}: {}; ", plan.failed->reason, plan.failed->message) : "";
  return Waiting(plan, fmt::format("{}going back to {}", why, current));
}

RolloutProgress OfPhase(const PlanResource& plan, const std::vector<PlanRevision>& revisions) {
  if (plan.MayBeHeld() && plan.progressing.reason == "NotPlaced")
    return Waiting(plan, plan.progressing.message);
  if (plan.phase == "Prepare") return OfPrepare(plan, revisions);
  if (plan.phase == "Activate") return OfActivate(plan, revisions);
  if (plan.phase == "Observe") return OfObserve(plan);
  if (plan.phase == "GoBack") return OfGoBack(plan, revisions);
  if (plan.phase == "Stopped") return OfStopped(plan, revisions);
  if (plan.phase == "Complete" && plan.failed && plan.current == plan.update)
    return OfNotDerivedAgain(plan, revisions);
  if (!plan.current.empty() && plan.current == plan.update &&
      (plan.phase == "Complete" || plan.phase.empty())) {
    if (plan.progressing.reason == "CompleteUnobserved") {
      return {
          .outcome = RolloutOutcome::kSucceeded,
          .line = fmt::format("cacheplan \"{}\" rolled out, but its effect was not "
                              "observed: {}",
                              plan.name, plan.progressing.message),
          .advice = fmt::format("Look at these jobs. When an epoch of one is over, run: kubectl "
                                "optcache plan show {} -n {}",
                                plan.name, plan.name_space)};
    }
    if (plan.active < plan.desired) {
      return Waiting(plan,
                     fmt::format("{} of {} nodes follow {}", plan.active, plan.desired,
                                 DescribeRevision(revisions, HashOfRevision(plan.current))),
                     plan.active, plan.desired);
    }
    return {.outcome = RolloutOutcome::kSucceeded,
            .line = fmt::format("cacheplan \"{}\" successfully rolled out", plan.name),
            .advice = plan.uncompared
                          ? "It was not compared with the revision before: nothing was observed of "
                            "that one with these nodes, jobs and memory."
                          : ""};
  }
  return Waiting(
      plan, plan.available.message.empty() ? "the operator has not begun" : plan.available.message);
}

OrderedJson RevisionAsJson(const std::vector<PlanRevision>& revisions, const std::string& name) {
  if (name.empty()) return nullptr;
  const std::string hash = HashOfRevision(name);
  const PlanRevision* const revision = FindRevision(revisions, hash);
  OrderedJson json = {{"name", name}, {"hash", hash}};
  if (revision != nullptr) json["revision"] = revision->number;
  return json;
}

}  // namespace

RolloutProgress TellRollout(const PlanResource& plan, const std::vector<PlanRevision>& revisions) {
  if (plan.available.status == ConditionStatus::kFalse) {
    for (const char* reason : {"AnotherPlan", "NoDataset", "Invalid"}) {
      if (plan.available.reason == reason && plan.observed_generation >= plan.generation) {
        return Failed(fmt::format("cacheplan \"{}\" is not in use: {}: {}", plan.name, reason,
                                  plan.available.message));
      }
    }
  }
  if (plan.observed_generation < plan.generation) {
    return plan.available.reason == "Waiting"
               ? Waiting(plan, plan.available.message)
               : RolloutProgress{.line = "Waiting for cacheplan spec update to be observed..."};
  }
  if (plan.progressing.reason == "ProgressDeadlineExceeded") {
    return Failed(fmt::format("cacheplan \"{}\" exceeded its progress deadline: {}", plan.name,
                              plan.progressing.message));
  }
  RolloutProgress progress = OfPhase(plan, revisions);
  if (plan.paused && progress.outcome == RolloutOutcome::kUnderWay && plan.MayBeHeld()) {
    progress.line += " (paused)";
    progress.advice = fmt::format("To continue, run: kubectl optcache rollout resume {} -n {}",
                                  plan.name, plan.name_space);
  }
  if (plan.acknowledge && progress.advice.empty()) {
    progress.advice =
        "spec.rollout.acknowledge is set: changes that are predicted to be worse are not held.";
  }
  if (plan.degraded.status == ConditionStatus::kTrue &&
      progress.outcome != RolloutOutcome::kFailed) {
    progress.advice =
        fmt::format("The plan is degraded: {}: {}{}{}", plan.degraded.reason, plan.degraded.message,
                    progress.advice.empty() ? "" : "\n", progress.advice);
  }
  return progress;
}

std::string RolloutBar(const RolloutProgress& progress) {
  if (progress.all == 0) return "";
  const std::uint64_t filled = std::min(progress.done, progress.all) * kBarWidth / progress.all;
  return fmt::format("[{}{}]  {} of {}", std::string(filled, '#'),
                     std::string(kBarWidth - filled, '-'), progress.done, progress.all);
}

std::string RolloutAsJson(const PlanResource& plan, const std::vector<PlanRevision>& revisions,
                          const RolloutProgress& progress) {
  OrderedJson json = {
      {"namespace", plan.name_space},
      {"name", plan.name},
      {"outcome", progress.outcome == RolloutOutcome::kUnderWay    ? "UnderWay"
                  : progress.outcome == RolloutOutcome::kSucceeded ? "Succeeded"
                                                                   : "Failed"},
      {"phase", plan.phase},
      {"reason", plan.progressing.reason},
      {"paused", plan.paused},
      {"message", progress.line},
      {"current", RevisionAsJson(revisions, plan.current)},
      {"update", RevisionAsJson(revisions, plan.update)},
      {"nodes", {{"desired", plan.desired}, {"prepared", plan.prepared}, {"active", plan.active}}},
      {"predicted", FiguresAsJson(plan.predicted)},
      {"observed", FiguresAsJson(plan.observed)}};
  if (plan.failed) {
    json["failed"] = {{"revision", plan.failed->revision},
                      {"reason", plan.failed->reason},
                      {"message", plan.failed->message}};
  }
  if (plan.degraded.status == ConditionStatus::kTrue)
    json["degraded"] = {{"reason", plan.degraded.reason}, {"message", plan.degraded.message}};
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace optcache::cli
