#pragma once

// One of several processes leads: the holder of a Lease. As client-go's leaderelection, so that
// both agree about whose a Lease is: times of the server and of other machines are never compared
// with ours, only how long a record has not changed for us.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/counters.h"
#include "kube/client.h"
#include "net/event_loop.h"

namespace optcache::kube {

struct LeaderElectionOptions {
  ObjectKey lease;
  std::string identity;  // "POD_NAME_POD_IP": unique among the candidates and over time
  // How long others wait for a holder that is silent.
  Duration lease_duration = std::chrono::seconds(15);
  // How long the holder tries before it gives up: its writes have stopped before anyone else leads.
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry_period = std::chrono::seconds(2);
  std::uint64_t seed = 0;  // of the jitter
};

// How a leadership ended.
enum class LeadershipEnd {
  // No renewal came through in time, or the Lease was taken away: it is a candidate again.
  kNotRenewed,
  // This process stood still until after others could lead. What it knows and what it has under way
  // are of then: the election is over for it, and it is expected to end.
  kFrozen,
};

// Each may stop or destroy the elector.
struct LeaderCallbacks {
  // We lead. The term is the Lease's leaseTransitions, which rises with each leadership, also of
  // one process after another in the same pod.
  std::function<void(std::uint64_t term)> on_started;
  // We lead no more; writes have been refused since before this call. Not after Stop.
  std::function<void(LeadershipEnd end, const std::string& why)> on_stopped;
  // Somebody else leads, as far as the Lease says; "" if nobody does.
  std::function<void(const std::string& identity)> on_leader;
};

// Used on the loop's thread only. `loop`, `clock` and `client` outlive it. The client is one of its
// own, not fenced, so that a renewal never waits behind other requests.
class LeaderElector {
 public:
  LeaderElector(net::EventLoop& loop, const Clock& clock, Client& client,
                LeaderElectionOptions options, LeaderCallbacks callbacks);
  ~LeaderElector();
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;

  void Start();
  // Stops leading at once, gives the Lease back so that another can take it, and calls back when
  // that is done or has taken `timeout`.
  void Stop(Duration timeout, std::function<void()> released);

  // By the clock, not by what has been called: false in a process that was frozen past its time,
  // from the first instruction after it.
  bool IsLeader() const;
  // Until when writes are safe; nothing if we do not lead. For FencedClient.
  std::optional<MonotonicTime> WritesUntil() const;
  // Of the present leadership; 0 before the first.
  std::uint64_t term() const;
  // The holder as last seen, ourselves included; "" if nobody, or if its time has run out.
  std::string leader() const;

  // leader_election_master_status in docs/metrics.md.
  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace optcache::kube
