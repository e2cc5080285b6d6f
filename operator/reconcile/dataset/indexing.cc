// Decides about the index Job whose name follows from the present spec.
//
//   the manifest is of this spec ──────────────────────────► done
//   no Job of that name ─► Create ─► running ─┬─ succeeded ─► TakeResult ─► done
//             ▲                               └─ failed ─► SayFailed
//             └── removed: by its time to live, or as its word is gone, or as the manifest is lost
//
// The name has a hash of all that a manifest depends on (index_job.h). So another spec is another
// Job, and running Jobs of other names are removed. A Job of that name that another object owns is
// left alone and waited for. The end of a Job may be seen before that of its pod, so a missing word
// is awaited for three minutes.

#include "operator/reconcile/dataset/indexing.h"

#include <algorithm>

#include <fmt/format.h>

#include "kube/conditions.h"
#include "operator/reconcile/reasons.h"

namespace optcache::reconcile {
namespace {

constexpr Duration kLookAgain = std::chrono::seconds(2);
// Nodes report every second; a manifest that was put just now may not be in a report yet.
constexpr double kReportedAfterSeconds = 30;
// Kubernetes makes a Job's pod at once, unless something forbids it.
constexpr Duration kPodIsMadeWithin = std::chrono::seconds(30);
// Jobs and pods are followed apart: the end of a Job may be seen before that of its pod, and a
// watch that stands still is noticed after two and a half minutes.
constexpr Duration kPodIsSeenWithin = std::chrono::minutes(3);

SourceState SourceAfter(const IndexResult& result) {
  const bool of_source = result.reason.starts_with("Source");
  return result.ok() || !of_source ? SourceState::kReachable : SourceState::kUnreachable;
}

void Remove(const Observed& observed, const IndexJob& job, Indexing& indexing) {
  const kube::ObjectKey dataset = kube::KeyOf(observed.dataset);
  indexing.deletes.push_back(
      {.resource = kube::kJobs, .key = {.ns = dataset.ns, .name = job.name}, .uid = job.uid});
  indexing.requeue_after = kLookAgain;
}

// The Job to follow: that of `wanted`. One of an earlier period, which has made nothing yet, goes
// before it: an interval may be shorter than the indexing takes.
std::string JobToFollow(const Observed& observed, const api::DatasetStatus& status,
                        const IndexMark& wanted) {
  const IndexMark last = ParseIndexMark(status.index_hash);
  const std::int64_t taken = last.hash == wanted.hash ? last.period : -1;
  const std::string dataset = kube::KeyOf(observed.dataset).name;
  const std::string uid = kube::UidOf(observed.dataset);
  IndexMark found = wanted;
  for (const IndexJob& job : observed.jobs) {
    const IndexMark mark = MarkOfJob(job.name);
    if (job.owner_uid == uid && !job.deleting && mark.hash == wanted.hash && mark.period > taken &&
        mark.period < found.period)
      found = mark;
  }
  return IndexJobName(dataset, found);
}

// Jobs of an earlier spec that still run make a manifest that nobody wants.
void RemoveOutdated(const Observed& observed, const std::string& wanted, Indexing& indexing) {
  const std::string uid = kube::UidOf(observed.dataset);
  for (const IndexJob& job : observed.jobs) {
    const bool outdated = job.name != wanted && job.owner_uid == uid;
    if (outdated && !job.deleting && job.state == JobState::kRunning)
      Remove(observed, job, indexing);
  }
}

void SayUnderWay(const IndexJob& job, double now, Indexing& indexing) {
  indexing.reason = "Indexing";
  indexing.message = "Job " + job.name + " lists the source";
  if (!job.has_pod && job.trouble.empty()) {
    const std::chrono::duration<double> age(now - job.created_at);
    indexing.requeue_after = kPodIsMadeWithin;
    if (age < kPodIsMadeWithin || job.created_at == 0) return;
    indexing.reason = "JobPending";
    indexing.message = "Job " + job.name + " gets no pod, as a quota or a policy may forbid it: " +
                       "kubectl describe job " + job.name + " says why";
  }
  if (!job.trouble.empty()) {
    indexing.reason = "JobPending";
    indexing.message = "Job " + job.name + " does not run: " + job.trouble;
  }
  const Result<IndexResult> attempt = ParseIndexResult(job.result);
  if (!attempt || attempt->ok()) return;
  indexing.failed = true;
  indexing.reason = attempt->reason;
  indexing.message = attempt->message + " (Job " + job.name + " tries again)";
  indexing.source = SourceAfter(*attempt);
}

void SayFailed(const IndexJob& job, Indexing& indexing) {
  indexing.failed = true;
  const std::string again = fmt::format(" (it is tried again {} minutes after Job {} has ended)",
                                        kJobKeptSeconds / 60, job.name);
  const Result<IndexResult> result = ParseIndexResult(job.result);
  if (result && !result->ok()) {
    indexing.reason = result->reason;
    indexing.message = result->message + again;
    indexing.source = SourceAfter(*result);
    return;
  }
  indexing.reason = "IndexFailed";
  indexing.message = (job.trouble.empty() ? "it has failed without a word" : job.trouble) + again;
}

void TakeResult(const Observed& observed, const IndexJob& job, Indexing& indexing) {
  const Result<IndexResult> result = ParseIndexResult(job.result);
  if (result && result->ok()) {
    indexing.done = true;
    indexing.result = *result;
    indexing.source = SourceState::kReachable;
    return;
  }
  indexing.reason = "Indexing";
  if (std::chrono::duration<double>(observed.now - job.finished_at) < kPodIsSeenWithin) {
    indexing.message = "Job " + job.name + " has ended: what it said is awaited";
    indexing.requeue_after = kPodIsSeenWithin;
    return;
  }
  indexing.message = "what Job " + job.name + " said at its end is gone: it runs again";
  Remove(observed, job, indexing);
}

void Create(const Observed& observed, const api::DatasetSpec& spec, const std::string& before,
            const ReconcileSettings& settings, const std::string& name, Indexing& indexing) {
  Result<kube::Json> job =
      BuildIndexJob(observed.dataset, spec, {.mark = indexing.mark, .before = before}, settings);
  if (!job) {
    indexing.failed = true;
    indexing.reason = "SourceUnsupported";
    indexing.message = job.error().message();
    return;
  }
  indexing.reason = "Indexing";
  indexing.message = "Job " + name + " is to list the source";
  indexing.applies.push_back({.resource = kube::kJobs, .object = *std::move(job)});
}

// The Job of the present spec, as it is.
void Follow(const Observed& observed, const IndexJob& job, bool lost, Indexing& indexing) {
  const bool foreign = job.owner_uid != kube::UidOf(observed.dataset);
  if (foreign || job.deleting) {
    indexing.reason = "Indexing";
    indexing.message = "Job " + job.name + " of before is being removed";
    if (foreign && !job.deleting) indexing.message = "waits for Job " + job.name + " of another";
    indexing.requeue_after = kLookAgain;
    return;
  }
  if (job.state == JobState::kRunning) return SayUnderWay(job, observed.now, indexing);
  if (job.state == JobState::kFailed) return SayFailed(job, indexing);
  if (lost && observed.now - job.finished_at > kReportedAfterSeconds) {
    indexing.reason = "Indexing";
    indexing.message = "Job " + job.name + " runs again, as the manifest is lost";
    return Remove(observed, job, indexing);
  }
  TakeResult(observed, job, indexing);
}

// Why the last listing failed, if it did. A Job that waits for its pod hides that in Indexed, and
// leaves it in SourceReachable.
std::optional<kube::Condition> LastFailure(const kube::Json& dataset) {
  for (const char* type : {"Indexed", "SourceReachable"}) {
    kube::Condition condition = kube::ConditionOf(dataset, type);
    const std::string& reason = condition.reason;
    const bool failed =
        IsIndexReason(reason) || reason == "IndexFailed" || reason == "SourceUnsupported";
    if (condition.status == kube::ConditionStatus::kFalse && failed) return condition;
  }
  return std::nullopt;
}

// Of a Dataset that is indexed and is so again as its interval wants it: while no listing has
// failed, what was said of the last time stays.
void SayOfRepetition(const Observed& observed, Indexing& indexing) {
  if (indexing.done) return;
  const std::optional<kube::Condition> failure = LastFailure(observed.dataset);
  if (!failure && !indexing.failed) indexing.source = SourceState::kReachable;
  if (indexing.reason != "Indexing") {
    indexing.message += ". The earlier list of samples stays in use";
  } else if (failure) {
    indexing.reason = failure->reason;
    indexing.message = failure->message;
  } else {
    indexing.done = true;
  }
}

void SayIndexed(const Observed& observed, const api::DatasetStatus& status, Indexing& indexing) {
  const std::uint64_t samples = indexing.result ? indexing.result->samples : status.samples;
  const ByteCount bytes = indexing.result ? indexing.result->bytes : status.bytes;
  indexing.reason = "Indexed";
  indexing.message = fmt::format("{} samples, {}", samples, FormatBytes(bytes));
  if (const std::size_t jobs = observed.cache ? observed.cache->jobs_of_before : 0; jobs > 0) {
    indexing.message += fmt::format("; {} still {} the manifest that {} began with",
                                    jobs == 1 ? "1 job" : fmt::format("{} jobs", jobs),
                                    jobs == 1 ? "reads" : "read", jobs == 1 ? "it" : "they");
  }
}

void LookAgainAtNextPeriod(double now, std::int64_t interval, Indexing& indexing) {
  const std::chrono::duration<double> wait(static_cast<double>(indexing.mark.period + interval) -
                                           now);
  const auto next = std::chrono::ceil<std::chrono::seconds>(wait);
  if (!indexing.requeue_after || *indexing.requeue_after > next) indexing.requeue_after = next;
}

}  // namespace

bool IsManifestLost(const Observed& observed, const api::DatasetStatus& status) {
  return observed.cache && !status.manifest_digest.empty() &&
         observed.cache->manifest_digest == status.manifest_digest &&
         observed.cache->manifest_missed_seconds > kManifestLostSeconds;
}

Indexing DecideIndexing(const Observed& observed, const api::DatasetSpec& spec,
                        const api::DatasetStatus& status, const ReconcileSettings& settings) {
  const std::int64_t interval = spec.index_interval_seconds;
  Indexing indexing;
  indexing.mark = {.hash = IndexHash(observed.dataset, spec),
                   .period = PeriodAt(kube::UidOf(observed.dataset), interval, observed.now)};
  const std::string name = JobToFollow(observed, status, indexing.mark);
  RemoveOutdated(observed, name, indexing);
  const bool lost = IsManifestLost(observed, status);
  const IndexMark last = ParseIndexMark(status.index_hash);
  const bool of_spec = !status.manifest_digest.empty() && last.hash == indexing.mark.hash && !lost;
  if (of_spec && !IsDue(last, indexing.mark, interval)) {
    indexing.done = true;
    indexing.source = SourceState::kReachable;
  } else {
    const auto job = std::ranges::find(observed.jobs, name, &IndexJob::name);
    if (job == observed.jobs.end()) {
      Create(observed, spec, lost ? "" : status.manifest_digest, settings, name, indexing);
    } else {
      Follow(observed, *job, lost, indexing);
    }
    if (of_spec) SayOfRepetition(observed, indexing);
  }
  if (indexing.done) SayIndexed(observed, status, indexing);
  if (indexing.done && interval > 0) LookAgainAtNextPeriod(observed.now, interval, indexing);
  return indexing;
}

}  // namespace optcache::reconcile
