#pragma once

// Derives a revision beside what the node follows, to say what would come of it
// (docs/formats/rollout.md, "Trials").

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cache-node/planning/following.h"
#include "cache-node/planning/plan_task.h"
#include "coordination/state.h"
#include "plan/home_forecast.h"

namespace optcache::node {

struct TrialTask {
  std::string id;
  Following following;  // as if every member followed it
  wire::DatasetKey dataset = 0;
  // Version, self, base, sizes and lists; streams and rules are those of `following`.
  std::shared_ptr<const PlanTask> inputs;
};

// Takes as much memory as a plan that is derived; once `stop` says so, its report means nothing.
// Not thread-safe: one owner.
class TrialRun {
 public:
  explicit TrialRun(TrialTask task, StopCheck stop = {})
      : task_(std::move(task)), stop_(std::move(stop)) {}

  const std::string& id() const { return task_.id; }
  // Derives one more window. The report, once there is no more to derive.
  std::optional<coordination::TrialReport> Step();

 private:
  using Streams = std::map<StreamId, plan::StreamForecast>;
  // Windows, or what stands for them where nothing is planned.
  struct Windows;
  struct PlannedWindows;
  struct HomedWindows;

  Result<std::unique_ptr<Windows>> Start() const;
  Status Derive();
  coordination::TrialReport Report() const;

  TrialTask task_;
  StopCheck stop_;
  std::shared_ptr<Windows> windows_;
  int derived_ = 0;  // windows
  bool is_over_ = false;
  std::uint64_t digest_ = 0;
  Streams streams_;  // of each the last window in which it reads
};

}  // namespace optcache::node
