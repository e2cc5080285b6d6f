#include "operator/reconcile/cluster/plan_jobs.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "base/utf8.h"
#include "operator/reconcile/cacheplan/plan_status.h"

namespace optcache::reconcile {
namespace {

using coordination::StreamStatus;

std::uint64_t RanksThere(const StreamStatus& stream) {
  return stream.ranks - std::min(stream.ranks_lost, stream.ranks);
}

PlanJob JobOf(const StreamStatus& stream, std::string name, bool earlier) {
  return {.name = std::move(name),
          .pass = stream.pass,
          .position = stream.position,
          .length = stream.length,
          .ranks = RanksThere(stream),
          .rate = stream.rate,
          .order_known = stream.order_known && stream.conflict.empty(),
          .recipe = stream.conflict.empty() ? stream.recipe : "",
          .epoch = stream.epoch,
          .epoch_step = stream.epoch_step,
          .reads_earlier = earlier,
          .differs = stream.differs};
}

// Ranks that have gone over to the other manifest may be known of both.
void AddRanks(const StreamStatus& stream, bool earlier, PlanJob& job) {
  const PlanJob other = JobOf(stream, job.name, earlier);
  job.ranks = std::max(
      {job.ranks, other.ranks, std::min<std::uint64_t>(job.ranks + other.ranks, stream.world)});
  job.rate = std::max(job.rate, other.rate);
  job.order_known = job.order_known && other.order_known;
  job.reads_earlier = job.reads_earlier || (earlier && other.ranks > 0);
  if (job.differs.empty()) job.differs = other.differs;
}

}  // namespace

std::vector<PlanJob> PlanJobsOf(const std::vector<StreamStatus>& streams,
                                const std::vector<StreamStatus>& of_earlier) {
  std::vector<PlanJob> jobs;
  std::map<std::string, std::pair<std::size_t, std::uint32_t>> known;  // place and incarnation
  const auto add = [&](const StreamStatus& stream, bool earlier) {
    const std::string name = CutText(stream.name, kMaxJobName);
    const auto [found, is_new] = known.try_emplace(name, jobs.size(), stream.incarnation);
    auto& [place, incarnation] = found->second;
    if (is_new) {
      jobs.push_back(JobOf(stream, name, earlier));
    } else if (stream.incarnation == incarnation) {
      AddRanks(stream, earlier, jobs[place]);
    } else if (stream.incarnation > incarnation) {
      incarnation = stream.incarnation;
      jobs[place] = JobOf(stream, name, earlier);
    }
  };
  for (const StreamStatus& stream : streams)
    add(stream, /*earlier=*/false);
  for (const StreamStatus& stream : of_earlier)
    add(stream, /*earlier=*/true);
  return jobs;
}

}  // namespace optcache::reconcile
