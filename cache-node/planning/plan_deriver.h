#pragma once

// Derives plans on a thread of its own: replays the streams' orders and runs the planner, window
// after window, as far ahead as it is asked to. Trials have the time that is left. What nobody
// wants any more is stopped, also in the middle of a window.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "cache-node/planning/plan_index.h"
#include "cache-node/planning/plan_task.h"
#include "cache-node/planning/planned_shares.h"
#include "cache-node/planning/trial_run.h"
#include "cache-node/retention/retention_manager.h"
#include "coordination/state.h"

namespace optcache::node {

struct DerivedWindow {
  std::uint64_t number = 0;  // of its task
  coordination::Version version;
  Status status;  // an error ends the version: its streams stay without a plan
  std::vector<DerivedPass> passes;
  std::map<StreamId, PassNumber> planned;  // by stream: passes below are planned to their end
  std::vector<SampleId> evictions;         // held by nobody from the window's first pass on
  std::vector<RetentionManager::Departure>
      departures;               // from this node to others, before the first read
  PassNumber passes_ahead = 1;  // plan::PlanWindow
  bool first = false;           // of its version
  // What came of a trial; then nothing else is told.
  std::optional<coordination::TrialReport> trial;
};

// Thread-safe. The destructor waits until the thread has noticed that it is to stop, and has freed
// what it holds: parts of a second where a dataset has millions of samples. DeriverEnds waits
// elsewhere.
class PlanDeriver {
 public:
  // Called on the deriver's thread.
  using Deliver = std::function<void(DerivedWindow)>;
  explicit PlanDeriver(Deliver deliver);
  ~PlanDeriver();

  // It ends soon; what it is just about to tell still comes. Does not wait.
  void Stop();
  // Gives up what came before and derives `task` from its cuts on.
  void Begin(PlanTask task);
  // Derives nothing until the next task.
  void GiveUp();
  // Derives it once there is nothing else to derive, one after the other, and tells what came of
  // it.
  void Try(TrialTask task);
  // Gives up the trials that are not among `ids`.
  void TryOnly(const std::vector<std::string>& ids);
  // Goes on until every stream is planned through the pass given here, and no further.
  void PlanThrough(const std::map<StreamId, PassNumber>& passes);

 private:
  struct Planning;  // a task with its planner and how far it is

  struct Work;  // what the thread is at
  void Run(const std::stop_token& stop);
  // False: it is to end.
  bool TakeWork(Work& work, const std::stop_token& stop);
  void DoOwn(Work& work);
  void DoTrial(Work& work);
  bool OwnIsWanted() REQUIRES(mutex_);
  void StopOwn() REQUIRES(mutex_);

  Deliver deliver_;
  Mutex mutex_;
  CondVar changed_;
  std::optional<PlanTask> next_task_ GUARDED_BY(mutex_);
  bool given_up_ GUARDED_BY(mutex_) = false;  // what was derived is to be forgotten
  struct Progress {
    PassNumber planned = 0;  // passes below are planned
    PassNumber last = 0;     // of the stream
    PassNumber through = 0;  // planned next, and no further

    void WantThrough(PassNumber pass) { through = std::max(through, std::min(pass, last)); }
  };
  std::map<StreamId, Progress> progress_ GUARDED_BY(mutex_);
  bool running_ GUARDED_BY(mutex_) = false;
  std::deque<TrialTask> trials_ GUARDED_BY(mutex_);    // that have not begun
  std::vector<std::string> tried_ GUARDED_BY(mutex_);  // those that are still asked for
  std::string trying_ GUARDED_BY(mutex_);              // the one that has begun last
  std::stop_source own_stop_ GUARDED_BY(mutex_);       // of what was asked for last
  std::stop_source trial_stop_ GUARDED_BY(mutex_);     // of `trying_`
  std::jthread thread_;
};

}  // namespace optcache::node
