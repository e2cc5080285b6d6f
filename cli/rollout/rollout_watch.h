#pragma once

// Follows a rollout until it is over.

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "cli/cluster/kubectl.h"
#include "cli/rollout/rollout_progress.h"

namespace optcache::cli {

struct RolloutWatch {
  std::string name_space;  // empty: kubectl's own
  std::string name;
  bool until_over = true;      // or look once
  std::uint64_t revision = 0;  // it has to stay the newest; 0: any may be
  Duration timeout{};          // 0: never
  Duration interval = std::chrono::seconds(2);
  bool quiet = false;
};

struct WatchedRollout {
  PlanResource plan;
  std::vector<PlanRevision> revisions;
  RolloutProgress progress;
};

// Writes a line to `fd` whenever something has changed; on a terminal one line with a bar is drawn
// over. kDeadlineExceeded: `timeout` is over; kConflict: another revision is the newest. A cluster
// that does not answer is asked again some times.
Result<WatchedRollout> WatchRollout(const Kubectl& kubectl, const RolloutWatch& watch, int fd);

}  // namespace optcache::cli
