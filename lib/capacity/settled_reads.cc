#include "capacity/settled_reads.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace optcache::coordination {
namespace {

constexpr double kNothingKnown = 1;  // all jobs read equally fast

bool ReadAlike(const JobReads& one, const JobReads& other) {
  return one.order_known == other.order_known && one.repeats == other.repeats;
}

}  // namespace

// Of each of this many jobs that are the first on a dataset; 0: nothing is remembered.
double SettledReads::RememberedRate(const std::string& dataset, std::size_t jobs) {
  if (jobs_.contains(dataset)) return 0;
  const auto known = remembered_.extract(dataset);
  return known.empty() ? 0 : known.mapped() / static_cast<double>(jobs);
}

bool SettledReads::Observe(const ClusterReads& seen, MonotonicTime now) {
  bool changed = false;
  for (const auto& [dataset, reads] : seen) {
    const double remembered = RememberedRate(dataset, reads.size());
    for (const auto& [name, read] : reads) {
      const auto [at, is_new] = jobs_[dataset].try_emplace(name, Job{.reads = read});
      Job& job = at->second;
      if (is_new && remembered > 0) {
        job.reads.rate = remembered;
        job.reads.measured = true;
      }
      changed = changed || is_new || (!job.reads.measured && read.measured) ||
                !ReadAlike(job.reads, read);
      if (!job.reads.measured) job.reads = read;
      job.reads.order_known = read.order_known;
      job.reads.repeats = read.repeats;
      job.seen = now;
    }
  }
  for (auto& [dataset, jobs] : jobs_) {
    const auto gone = std::erase_if(
        jobs, [now](const auto& item) { return now - item.second.seen > kJobLingers; });
    changed = changed || gone > 0;
  }
  std::erase_if(jobs_, [](const auto& item) { return item.second.empty(); });
  seen_ = seen;
  if (!looked_) settled_at_ = now;
  looked_ = true;
  if (changed) FillIn();
  return changed;
}

void SettledReads::FillIn() {
  std::vector<double> measured;
  for (const auto& [dataset, jobs] : jobs_) {
    for (const auto& [name, job] : jobs) {
      if (job.reads.measured) measured.push_back(job.reads.rate);
    }
  }
  const auto middle = measured.begin() + static_cast<std::ptrdiff_t>(measured.size() / 2);
  if (!measured.empty()) std::ranges::nth_element(measured, middle);
  const double usual = measured.empty() ? kNothingKnown : *middle;
  in_force_.clear();
  for (const auto& [dataset, jobs] : jobs_) {
    for (const auto& [name, job] : jobs) {
      JobReads& reads = in_force_[dataset][name] = job.reads;
      if (!reads.measured) reads.rate = usual;
    }
  }
}

void SettledReads::Settle(MonotonicTime now) {
  for (auto& [dataset, jobs] : jobs_) {
    const auto reads = seen_.find(dataset);
    if (reads == seen_.end()) continue;
    for (auto& [name, job] : jobs) {
      const auto read = reads->second.find(name);
      if (read != reads->second.end() && read->second.measured) job.reads = read->second;
    }
  }
  settled_at_ = now;
  FillIn();
}

bool SettledReads::SettleIfWorthwhile(MonotonicTime now,
                                      const std::function<Savings(const ClusterReads&)>& weigh) {
  if (now - weighed_at_ < kWeighEvery || !MayBeSettled(now)) return false;
  weighed_at_ = now;
  SettledReads settled = *this;
  settled.Settle(now);
  const Savings savings = weigh(settled.in_force());
  if (!IsWorthwhile(savings.then, savings.now)) return false;
  *this = std::move(settled);
  return true;
}

}  // namespace optcache::coordination
