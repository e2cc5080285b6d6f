#pragma once

// Replays the ranks' orders on a thread of its own.

#include <deque>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "net/event_loop.h"
#include "sampler/order_source.h"
#include "sidecar/ports/ports.h"

namespace optcache::sidecar {

// What a rank reads in a pass, from its list; the CRC is of the ids from `begin` to before `end`.
RankPass IndexRankPass(std::vector<SampleId> list, std::uint64_t begin, std::uint64_t end);
// The same out of the order of all ranks.
RankPass MakeRankPass(std::span<const SampleId> pass_order, const RankPassRequest& request);

// Replay is called on the loop's thread, and calls back there.
class OrderReplayer final : public OrderPort {
 public:
  OrderReplayer(net::EventLoop& loop, const Clock& clock);
  ~OrderReplayer() override;
  OrderReplayer(const OrderReplayer&) = delete;
  OrderReplayer& operator=(const OrderReplayer&) = delete;

  void Replay(const RankPassRequest& request, Done done) override;

 private:
  struct Job {
    RankPassRequest request;
    Done done;
  };
  // One pass's order of all ranks: several ranks of a pod ask for it one after the other.
  struct LastOrder {
    sampler::Recipe recipe;
    std::uint64_t epoch = 0;
    std::vector<SampleId> ids;
  };

  void Work(const std::stop_token& stop);
  bool Take(const std::stop_token& stop, Job& job);
  Result<std::shared_ptr<const RankPass>> Make(const RankPassRequest& request);
  Result<std::vector<SampleId>> PassOrder(const RankPassRequest& request);

  net::EventLoop& loop_;
  const Clock& clock_;

  Mutex mutex_;
  CondVar changed_;
  std::deque<Job> jobs_ GUARDED_BY(mutex_);

  // The worker's own.
  std::vector<sampler::OrderSource> sources_;
  LastOrder last_;

  std::jthread worker_;  // last: it uses all of the above
};

}  // namespace optcache::sidecar
