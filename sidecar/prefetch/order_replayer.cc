#include "sidecar/prefetch/order_replayer.h"

#include <algorithm>
#include <numeric>

#include "sampler/order_crc.h"

namespace optcache::sidecar {
namespace {

constexpr std::size_t kSourcesMax = 16;  // recipes that are remembered
constexpr auto kLongestNap = std::chrono::seconds(1);

}  // namespace

RankPass IndexRankPass(std::vector<SampleId> list, std::uint64_t begin, std::uint64_t end) {
  RankPass pass{.ids = std::move(list), .by_id = {}};
  pass.by_id.resize(pass.ids.size());
  std::iota(pass.by_id.begin(), pass.by_id.end(), 0);
  const auto& ids = pass.ids;
  std::sort(pass.by_id.begin(), pass.by_id.end(), [&ids](std::uint32_t a, std::uint32_t b) {
    return std::pair(ids[a], a) < std::pair(ids[b], b);
  });
  end = std::min<std::uint64_t>(end, ids.size());
  begin = std::min(begin, end);
  pass.crc = sampler::OrderCrc(std::span(ids).subspan(begin, end - begin));
  return pass;
}

RankPass MakeRankPass(std::span<const SampleId> pass_order, const RankPassRequest& request) {
  return IndexRankPass(sampler::RankPart(pass_order, request.recipe.world, request.rank),
                       request.begin, request.end);
}

OrderReplayer::OrderReplayer(net::EventLoop& loop, const Clock& clock)
    : loop_(loop), clock_(clock), worker_([this](const std::stop_token& stop) { Work(stop); }) {}

OrderReplayer::~OrderReplayer() {
  worker_.request_stop();
  changed_.NotifyAll();
}

void OrderReplayer::Replay(const RankPassRequest& request, Done done) {
  MutexLock lock(mutex_);
  jobs_.push_back({request, std::move(done)});
  changed_.NotifyOne();
}

bool OrderReplayer::Take(const std::stop_token& stop, Job& job) {
  MutexLock lock(mutex_);
  while (jobs_.empty() && !stop.stop_requested()) {
    changed_.WaitUntil(mutex_, clock_.Now() + kLongestNap);
  }
  if (stop.stop_requested()) return false;
  job = std::move(jobs_.front());
  jobs_.pop_front();
  return true;
}

void OrderReplayer::Work(const std::stop_token& stop) {
  Job job;
  while (Take(stop, job)) {
    loop_.Post([done = std::move(job.done), made = Make(job.request)] { done(made); });
  }
}

Result<std::shared_ptr<const RankPass>> OrderReplayer::Make(const RankPassRequest& request) {
  if (request.trace != nullptr) {
    return std::make_shared<const RankPass>(
        IndexRankPass(*request.trace, request.begin, request.end));
  }
  if (last_.ids.empty() || last_.recipe != request.recipe || last_.epoch != request.epoch) {
    ASSIGN_OR_RETURN(std::vector<SampleId> ids, PassOrder(request));
    last_ = {.recipe = request.recipe, .epoch = request.epoch, .ids = std::move(ids)};
  }
  return std::make_shared<const RankPass>(MakeRankPass(last_.ids, request));
}

Result<std::vector<SampleId>> OrderReplayer::PassOrder(const RankPassRequest& request) {
  for (sampler::OrderSource& source : sources_) {
    if (source.recipe() == request.recipe) return source.PassOrder(request.epoch);
  }
  ASSIGN_OR_RETURN(sampler::OrderSource source, sampler::OrderSource::Make(request.recipe));
  if (sources_.size() >= kSourcesMax) sources_.erase(sources_.begin());
  sources_.push_back(std::move(source));
  return sources_.back().PassOrder(request.epoch);
}

}  // namespace optcache::sidecar
