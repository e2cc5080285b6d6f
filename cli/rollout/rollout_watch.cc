#include "cli/rollout/rollout_watch.h"

#include <algorithm>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "cli/cluster/plan_questions.h"
#include "cli/terminal/live_screen.h"

namespace optcache::cli {
namespace {

constexpr int kMaxLostLooks = 5;  // one after the other

bool IsPassing(Code code) {
  return code == Code::kUnavailable || code == Code::kDeadlineExceeded;
}

class Watcher {
 public:
  Watcher(const Kubectl& kubectl, const RolloutWatch& watch, int fd)
      : kubectl_(kubectl), watch_(watch), screen_(fd) {}

  Result<WatchedRollout> Run() {
    const MonotonicTime begun = SystemClock().Now();
    int failures = 0;
    while (true) {
      Result<WatchedRollout> rollout = Look();
      if (!rollout &&
          (!IsPassing(rollout.error().code()) || !watch_.until_over || ++failures == kMaxLostLooks))
        return rollout;
      if (rollout) {
        failures = 0;
        const bool over = rollout->progress.outcome != RolloutOutcome::kUnderWay;
        if (over || !watch_.until_over) return Finish(*std::move(rollout));
        Tell(rollout->progress);
      }
      const Duration spent = SystemClock().Now() - begun;
      if (watch_.timeout > Duration(0) && spent + watch_.interval > watch_.timeout) {
        std::this_thread::sleep_for(std::max(Duration(0), watch_.timeout - spent));
        return Error(Code::kDeadlineExceeded,
                     "timed out waiting for the condition" + (said_.empty() ? "" : ": " + said_));
      }
      std::this_thread::sleep_for(watch_.interval);
    }
  }

 private:
  Result<WatchedRollout> Look() {
    ASSIGN_OR_RETURN(PlanResource plan, AskForPlan(kubectl_, watch_.name_space, watch_.name));
    // Revisions come and go with the newest one's name.
    if (!revisions_ || revisions_of_ != plan.update) {
      ASSIGN_OR_RETURN(revisions_, AskForRevisions(kubectl_, plan));
      revisions_of_ = plan.update;
    }
    const PlanRevision* const newest = FindRevision(*revisions_, HashOfRevision(plan.update));
    if (watch_.revision != 0 && plan.observed_generation >= plan.generation &&
        (newest == nullptr || newest->number != watch_.revision)) {
      return Error(Code::kConflict,
                   fmt::format("desired revision ({}) is different from the running revision ({})",
                               watch_.revision, newest == nullptr ? 0 : newest->number));
    }
    RolloutProgress progress = TellRollout(plan, *revisions_);
    return WatchedRollout{
        .plan = std::move(plan), .revisions = *revisions_, .progress = std::move(progress)};
  }

  void Tell(const RolloutProgress& progress) {
    if (watch_.quiet) {
      said_ = progress.line;
      return;
    }
    const std::string bar = RolloutBar(progress);
    screen_.Draw(progress.line + "\n" + (bar.empty() ? "" : bar + "\n") +
                 (progress.advice.empty() ? "" : progress.advice + "\n"));
    if (!screen_.is_terminal() && progress.line != said_) {
      screen_.Say(progress.line);
      if (!progress.advice.empty()) screen_.Say(progress.advice);
    }
    said_ = progress.line;
  }

  Result<WatchedRollout> Finish(WatchedRollout rollout) {
    screen_.Draw("");
    // Why it failed is an error's message.
    if (watch_.quiet || rollout.progress.outcome == RolloutOutcome::kFailed) return rollout;
    if (rollout.progress.line != said_) screen_.Say(rollout.progress.line);
    if (!rollout.progress.advice.empty()) screen_.Say(rollout.progress.advice);
    return rollout;
  }

  const Kubectl& kubectl_;
  const RolloutWatch& watch_;
  LiveScreen screen_;
  std::optional<std::vector<PlanRevision>> revisions_;
  std::string revisions_of_;
  std::string said_;
};

}  // namespace

Result<WatchedRollout> WatchRollout(const Kubectl& kubectl, const RolloutWatch& watch, int fd) {
  return Watcher(kubectl, watch, fd).Run();
}

}  // namespace optcache::cli
