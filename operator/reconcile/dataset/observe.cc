// Reads Jobs, pods and CachePlans of one Dataset out of the informers' caches into plain values.
//
// How Jobs and pods say something is known here, and decisions need not know it: which label names
// a Job, where a pod says why it waits, which condition means that a Job has ended. The newest
// pod's trouble and the newest message count. JobFields and IndexPodFields list what is read;
// informers keep nothing else of spec and status, so a field that is read here must stand there.

#include "operator/reconcile/dataset/observe.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/time_text.h"
#include "base/utf8.h"
#include "kube/conditions.h"
#include "operator/api/resources.h"
#include "operator/reconcile/dataset/index_job.h"

namespace optcache::reconcile {
namespace {

using kube::Json;

constexpr std::size_t kLastWordsMax = 512;  // bytes

std::vector<std::string> InNamespaceOf(const Json& object, const std::string& name) {
  if (name.empty()) return {};
  return {kube::ObjectKey{.ns = kube::KeyOf(object).ns, .name = name}.ToString()};
}

std::string JobNameOf(const Json& pod) {
  const auto label = kube::LabelOf(pod, "batch.kubernetes.io/job-name");
  return label ? *label : kube::LabelOf(pod, "job-name").value_or("");
}

// Why a container is not running, unless it is on its way.
std::string WaitingOf(const Json& container) {
  const std::string reason = kube::TextAt(container, "/state/waiting/reason");
  if (reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing") return "";
  const std::string message = kube::TextAt(container, "/state/waiting/message");
  return message.empty() ? reason : reason + ": " + message;
}

// The end of a termination message, which may be that of a log, as one line of whole words. A word
// that is too long itself loses its beginning.
std::string LastWords(std::string message) {
  std::ranges::replace(message, '\n', ' ');
  message.erase(message.find_last_not_of(' ') + 1);
  if (message.size() > kLastWordsMax) {
    const std::size_t too_many = message.size() - kLastWordsMax;
    const std::size_t blank = message.find(' ', too_many);
    // Without a blank, the cut is between two characters of at most four bytes.
    message.erase(0, blank != std::string::npos ? blank : CutText(message, too_many + 3).size());
  }
  message.erase(0, message.find_first_not_of(' '));
  return message;
}

// How a container has ended, if not well, and what it said.
std::string EndOf(const Json& container) {
  const Json& ended = kube::Find(container, "/state/terminated");
  const auto code = kube::NumberAt(ended, "/exitCode");
  if (!code || *code == 0) return "";
  const std::string words = LastWords(kube::TextAt(ended, "/message"));
  return fmt::format("it ended with {} ({}){}{}", *code, kube::TextAt(ended, "/reason"),
                     words.empty() ? "" : ": ", words);
}

std::string TroubleOf(const Json& pod) {
  for (const Json& condition : kube::Items(pod, "/status/conditions")) {
    if (kube::TextAt(condition, "/type") == "PodScheduled" &&
        kube::TextAt(condition, "/status") == "False")
      return "its pod is not scheduled: " + kube::TextAt(condition, "/message");
  }
  for (const Json& container : kube::Items(pod, "/status/containerStatuses")) {
    std::string trouble = WaitingOf(container);
    if (trouble.empty()) trouble = EndOf(container);
    if (!trouble.empty()) return trouble;
  }
  return "";
}

std::string MessageOf(const Json& pod) {
  for (const Json& container : kube::Items(pod, "/status/containerStatuses")) {
    std::string message = kube::TextAt(container, "/state/terminated/message");
    if (!message.empty()) return message;
  }
  return "";
}

void TakeEnd(const Json& job, IndexJob& index) {
  const kube::Condition failed = kube::ConditionOf(job, "Failed");
  if (failed.status == kube::ConditionStatus::kTrue) {
    index.state = JobState::kFailed;
    index.trouble = failed.message.empty() ? failed.reason : failed.message;
    for (const Json& condition : kube::Items(job, "/status/conditions")) {
      if (kube::TextAt(condition, "/type") != "Failed") continue;
      index.finished_at = ParseTime(kube::TextAt(condition, "/lastTransitionTime")).value_or(0);
    }
  } else if (kube::ConditionOf(job, "Complete").status == kube::ConditionStatus::kTrue) {
    index.state = JobState::kSucceeded;
    index.finished_at = ParseTime(kube::TextAt(job, "/status/completionTime")).value_or(0);
  }
}

// Pods come oldest first: the newest word counts.
void TakePods(std::vector<kube::ObjectCache::Entry> pods, IndexJob& index) {
  std::ranges::stable_sort(pods, {}, [](const kube::ObjectCache::Entry& pod) {
    return kube::TextAt(*pod, "/metadata/creationTimestamp");
  });
  std::string trouble;
  for (const auto& pod : pods) {
    if (std::string message = MessageOf(*pod); !message.empty()) {
      index.results.push_back(message);
      index.result = std::move(message);
    }
    trouble = TroubleOf(*pod);
  }
  if (!trouble.empty()) index.trouble = std::move(trouble);
  index.has_pod = !pods.empty();
}

}  // namespace

kube::IndexFunction PlansByDataset() {
  return [](const Json& plan) { return InNamespaceOf(plan, kube::TextAt(plan, "/spec/dataset")); };
}

kube::IndexFunction JobsByDataset() {
  return [](const Json& job) {
    return InNamespaceOf(job, kube::LabelOf(job, kDatasetLabel).value_or(""));
  };
}

kube::IndexFunction PodsByJob() {
  return [](const Json& pod) { return InNamespaceOf(pod, JobNameOf(pod)); };
}

const std::vector<std::string>& JobFields() {
  static const std::vector<std::string> fields = {"/spec/completions", "/status/conditions",
                                                  "/status/completionTime"};
  return fields;
}

const std::vector<std::string>& IndexPodFields() {
  static const std::vector<std::string> fields = {"/status/conditions",
                                                  "/status/containerStatuses"};
  return fields;
}

std::vector<PlanObject> PlansOf(const kube::ObjectKey& dataset, const std::string& uid,
                                const kube::ObjectCache& plans) {
  std::vector<PlanObject> found;
  for (const auto& entry : plans.Lookup(kByDataset, dataset.ToString())) {
    if (kube::IsBeingDeleted(*entry)) continue;
    const auto owner = kube::ControllerOf(*entry);
    found.push_back({.name = kube::KeyOf(*entry).name,
                     .uid = kube::UidOf(*entry),
                     .created = kube::TextAt(*entry, "/metadata/creationTimestamp"),
                     .made_by_us = kube::LabelOf(*entry, kManagedByLabel) == kManagedBy && owner &&
                                   owner->uid == uid && kube::GenerationOf(*entry) == 1,
                     .spec = api::ParseCachePlanSpec(*entry)});
  }
  return found;
}

IndexJob ObserveJob(const Json& job, const kube::ObjectCache& pods) {
  const auto owner = kube::ControllerOf(job);
  IndexJob index{
      .name = kube::KeyOf(job).name,
      .uid = kube::UidOf(job),
      .owner_uid = owner ? owner->uid : "",
      .deleting = kube::IsBeingDeleted(job),
      .created_at = ParseTime(kube::TextAt(job, "/metadata/creationTimestamp")).value_or(0),
      .completions = kube::NumberAt(job, "/spec/completions").value_or(1)};
  TakeEnd(job, index);
  TakePods(pods.Lookup(kByJob, kube::KeyOf(job).ToString()), index);
  return index;
}

Observed ObserveDataset(const Json& dataset, const DatasetSources& sources, double now) {
  Observed observed{.dataset = dataset, .now = now};
  const kube::ObjectKey key = kube::KeyOf(dataset);
  for (const auto& job : sources.jobs.Lookup(kByDataset, key.ToString())) {
    observed.jobs.push_back(ObserveJob(*job, sources.pods));
  }
  observed.plans = PlansOf(key, kube::UidOf(dataset), sources.plans);
  const auto namesake = sources.plans.Find(key);
  observed.plan_name_taken =
      namesake != nullptr &&
      (kube::TextAt(*namesake, "/spec/dataset") != key.name || kube::IsBeingDeleted(*namesake));
  return observed;
}

}  // namespace optcache::reconcile
