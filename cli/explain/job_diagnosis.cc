// Diagnoses a job in a cluster, from what kubectl and the sidecars' pages answered.
//
// The idea: the diagnosis of each pod (pod_diagnosis.cc) is there already; here, pods that share a
// cause become one finding with their names, so that a job of a thousand ranks has a few lines.
// Tell* go from causes to effects: the Job, its pods, their injection, Datasets, sidecars, streams,
// reads, events. That no rank is attached is told only if the plans of all namespaces were seen.
// PutUrgentFirst keeps the order within a severity. Begin to read at ExplainJob, at the end.

#include "cli/explain/job_diagnosis.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/whole_number.h"
#include "cli/cluster/plan_resource.h"
#include "cli/explain/reader_finding.h"
#include "coordination/revisions.h"
#include "kube/conditions.h"
#include "kube/object.h"

namespace optcache::cli {
namespace {

using kube::Condition;
using kube::ConditionOf;
using kube::ConditionStatus;
using kube::Items;
using kube::Json;
using kube::NumberAt;
using kube::TextAt;
// What is said of pods, and their names.
using PodsBy = std::map<std::string, std::vector<std::string>>;

constexpr std::size_t kMaxPodsNamed = 4;
constexpr std::size_t kMaxJobEvents = 5;

// A pod of the job, and what is known of it.
struct PodOfJob {
  Json object;
  PodDiagnosis diagnosis;

  std::string Name() const { return kube::KeyOf(object).name; }
  std::string Phase() const { return TextAt(object, "/status/phase"); }
  bool Ended() const { return Phase() == "Succeeded" || Phase() == "Failed"; }
};

// A launcher's or a head's, for example.
bool AsksForInjection(const Json& pod) {
  for (const char* const map : {"/metadata/labels", "/metadata/annotations"}) {
    for (const auto& [key, value] : kube::Find(pod, map).items()) {
      if (key.starts_with("optcache.io/")) return true;
    }
  }
  return false;
}

// "train-0, train-1 and 3 more pods".
std::string NamesText(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kMaxPodsNamed);
  const std::string text = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown == names.size()) return text;
  return fmt::format("{} and {} more pods", text, names.size() - shown);
}

// How many indexes "1,3-5,7" names; what cannot be read counts as none.
std::int64_t IndexesIn(std::string_view list) {
  std::int64_t count = 0;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view item = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    const std::size_t dash = item.find('-');
    const auto first = ParseWholeNumber<std::int64_t>(item.substr(0, dash), INT32_MAX);
    const auto last = dash == std::string_view::npos
                          ? first
                          : ParseWholeNumber<std::int64_t>(item.substr(dash + 1), INT32_MAX);
    if (first && last && *first <= *last) count += *last - *first + 1;
  }
  return count;
}

// How many pods the Job controller keeps, as it counts them itself; `succeeded` and `active` pods
// were seen.
std::int64_t WantedPods(const Json& job, std::int64_t succeeded, std::int64_t active) {
  const auto is_true = [&](const char* condition) {
    return ConditionOf(job, condition).status == ConditionStatus::kTrue;
  };
  if (!job.is_object() || is_true("Failed") || is_true("FailureTarget") || is_true("Complete") ||
      is_true("SuccessCriteriaMet") || kube::BoolAt(job, "/spec/suspend"))
    return 0;
  succeeded = std::max(succeeded, NumberAt(job, "/status/succeeded").value_or(0));
  const std::int64_t parallelism = NumberAt(job, "/spec/parallelism").value_or(1);
  const auto completions = NumberAt(job, "/spec/completions");
  // Without completions, the first success says that the work is done: no pod is replaced.
  if (!completions) return succeeded > 0 ? std::min(active, parallelism) : parallelism;
  return std::min(parallelism,
                  *completions - succeeded - IndexesIn(TextAt(job, "/status/failedIndexes")));
}

class JobTeller {
 public:
  JobTeller(const JobAnswers& answers, std::vector<PodOfJob> pods, std::vector<Finding>& findings)
      : answers_(answers), pods_(std::move(pods)), findings_(findings) {}

  void TellJob(const Json& job);
  void TellPods(const Json& job);
  void TellInjection();
  void TellDatasets();
  void TellSidecars();
  void TellStreams(const std::vector<ReaderFact>& readers, bool all_seen);
  void TellReads();
  void TellEvents(const Json& list);

 private:
  const std::string& ns() const { return answers_.job.name_space; }
  // "kubectl describe pod train-0 -n vision".
  std::string PodCommand(std::string_view verb, const std::vector<std::string>& names) const {
    return fmt::format("kubectl {} {} -n {}", verb, names.front(), ns());
  }

  const JobAnswers& answers_;
  std::vector<PodOfJob> pods_;
  std::vector<Finding>& findings_;
};

void JobTeller::TellJob(const Json& job) {
  if (!job.is_object()) return;
  const std::string describe =
      fmt::format("kubectl describe job {} -n {}", answers_.job.name, ns());
  const Condition failed = ConditionOf(job, "Failed");
  const auto count = [&](const char* pointer) { return NumberAt(job, pointer).value_or(0); };
  const std::string counts =
      fmt::format("{} pods are active, {} succeeded, {} failed", count("/status/active"),
                  count("/status/succeeded"), count("/status/failed"));
  if (failed.status == ConditionStatus::kTrue) {
    findings_.push_back(Fault("job",
                              fmt::format("it failed ({}): {}", failed.reason, failed.message),
                              "Look at its pods: " + describe));
  } else if (ConditionOf(job, "Complete").status == ConditionStatus::kTrue) {
    findings_.push_back(Fine("job", "it is complete"));
  } else if (kube::BoolAt(job, "/spec/suspend")) {
    findings_.push_back(
        Warn("job", "it is suspended, so it has no pods",
             fmt::format("If no queue such as Kueue holds it, run: kubectl patch job "
                         "{} -n {} --type=merge -p '{{\"spec\":{{\"suspend\":false}}}}'",
                         answers_.job.name, ns())));
  } else {
    findings_.push_back(Fine("job", counts));
  }
}

void JobTeller::TellPods(const Json& job) {
  PodsBy unscheduled;
  std::map<std::string, std::size_t> phases;
  std::size_t active = 0;
  for (const PodOfJob& pod : pods_) {
    ++phases[pod.Phase()];
    if (!pod.Ended()) ++active;
    const Condition scheduled = ConditionOf(pod.object, "PodScheduled");
    if (scheduled.status == ConditionStatus::kFalse && !scheduled.reason.empty())
      unscheduled[scheduled.message].push_back(pod.Name());
  }
  for (const auto& [why, names] : unscheduled) {
    findings_.push_back(Fault(
        "pods", fmt::format("no machine yet for {}: {}", NamesText(names), why),
        "Free what the message names, or ask for less: " + PodCommand("describe pod", names)));
  }
  const auto there = static_cast<std::int64_t>(active + answers_.more_pods);
  const std::int64_t wanted =
      WantedPods(job, std::ranges::count(pods_, "Succeeded", &PodOfJob::Phase), there);
  if (answers_.has_all_pods && there < wanted) {
    findings_.push_back(Fault(
        "pods", fmt::format("{} of {} are missing", wanted - there, wanted),
        fmt::format("A quota, a policy or the injector may refuse them. To see why, run: kubectl "
                    "describe job {} -n {}",
                    answers_.job.name, ns())));
  }
  if (pods_.empty()) return;
  std::string text = fmt::format("{} in all:", pods_.size() + answers_.more_pods);
  for (const auto& [phase, count] : phases)
    text += fmt::format("{} {} {}", text.ends_with(':') ? "" : ",", count, phase);
  if (answers_.more_pods > 0)
    text += fmt::format("; {} more were not looked at", answers_.more_pods);
  findings_.push_back(Fine("pods", std::move(text)));
}

void JobTeller::TellInjection() {
  const bool has_injected =
      std::ranges::any_of(pods_, [](const PodOfJob& pod) { return pod.diagnosis.injected; });
  PodsBy without;
  std::vector<std::string> unasked;
  std::size_t injected = 0;
  for (const PodOfJob& pod : pods_) {
    if (pod.Ended()) continue;
    if (pod.diagnosis.injected) {
      ++injected;
    } else if (has_injected && !AsksForInjection(pod.object)) {
      unasked.push_back(pod.Name());
    } else {
      without[pod.diagnosis.why].push_back(pod.Name());
    }
  }
  for (const auto& [why, names] : without) {
    findings_.push_back(
        Fault("injection", fmt::format("no sidecar in {}. The reason: {}", NamesText(names), why),
              "Correct this in the pod template, and create the pods again: pods are injected only "
              "when they are created. Details: " +
                  PodCommand("optcache explain pod", names)));
  }
  if (!unasked.empty()) {
    findings_.push_back(
        Fine("injection",
             fmt::format("no sidecar in {}: pods without a label or annotation of optcache "
                         "get none, and a launcher or a head that reads no samples needs none",
                         NamesText(unasked))));
  }
  if (injected > 0)
    findings_.push_back(Fine("injection", fmt::format("{} pods have the sidecar", injected)));
}

void JobTeller::TellDatasets() {
  std::map<std::string, std::string> verdicts;
  for (const PodOfJob& pod : pods_) {
    for (const DatasetDiagnosis& dataset : pod.diagnosis.datasets)
      verdicts.emplace(dataset.name, dataset.verdict);
  }
  for (const auto& [name, verdict] : verdicts) {
    const std::string about = "Dataset " + name;
    const bool is_ready = verdict == "Ready";
    std::string what = (is_ready || verdict.starts_with("not ") ? "it is " : "it ") + verdict;
    if (is_ready || verdict.starts_with("cannot ")) {
      findings_.push_back(Fine(about, std::move(what)));
      continue;
    }
    const std::size_t slash = name.find('/');
    findings_.push_back(Fault(about, std::move(what),
                              fmt::format("Run: kubectl optcache explain dataset {} -n {}",
                                          name.substr(slash + 1), name.substr(0, slash))));
  }
}

void JobTeller::TellSidecars() {
  PodsBy broken;
  std::vector<std::string> alone;
  for (const PodOfJob& pod : pods_) {
    if (!pod.diagnosis.injected || pod.Phase() != "Running") continue;
    if (!pod.diagnosis.sidecar_runs) broken[pod.diagnosis.sidecar].push_back(pod.Name());
    if (pod.diagnosis.has_node == false) alone.push_back(pod.Name());
  }
  for (const auto& [state, names] : broken) {
    findings_.push_back(Fault("sidecar", fmt::format("of {}: {}", NamesText(names), state),
                              "Look at its log: " + PodCommand("logs -c optcache-sidecar", names)));
  }
  if (alone.empty()) return;
  findings_.push_back(Warn(
      "nodes",
      fmt::format("no ready optcache node is on the machine of {}: its sidecar reads the store",
                  NamesText(alone)),
      "Check node.nodeSelector, node.affinity and node.tolerations of the chart: kubectl get pods "
      "-A "
      "-o wide -l app.kubernetes.io/name=optcache,app.kubernetes.io/component=node"));
}

void JobTeller::TellStreams(const std::vector<ReaderFact>& readers, bool all_seen) {
  AddFindingsOnReaders(readers, findings_);
  const bool trains = std::ranges::any_of(pods_, [](const PodOfJob& pod) {
    return pod.diagnosis.injected && pod.diagnosis.sidecar_runs && !pod.Ended();
  });
  if (!readers.empty() || !all_seen || !trains) return;
  findings_.push_back(Warn(
      "streams", "no rank of it is attached, so its reads are not planned",
      "If training has begun, call attach(loader) of optcache.torch in each rank. See what the "
      "training process says: kubectl logs -n " +
          ns() + " " + pods_.front().Name()));
}

void JobTeller::TellReads() {
  Reads sum;
  std::size_t pages = 0;
  for (const PodOfJob& pod : pods_) {
    if (!pod.diagnosis.reads) continue;
    ++pages;
    sum += *pod.diagnosis.reads;
  }
  if (pages > 0) findings_.push_back(FindingOnReads(sum));
  if (!answers_.pages.empty()) findings_.push_back(FindingOnLimit(LimitOf(answers_.pages)));
  if (answers_.silent_pages > 0) {
    findings_.push_back(Warn(
        "metrics",
        fmt::format("the pages of {} sidecars cannot be had, so their reads are missing here",
                    answers_.silent_pages),
        fmt::format("If you may not read them, ask for the right to get pods/proxy: kubectl auth "
                    "can-i get pods --subresource=proxy -n {}",
                    ns())));
  }
}

void JobTeller::TellEvents(const Json& list) {
  const Json& events = Items(list, "/items");
  std::size_t shown = 0;
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    const bool warns = TextAt(*event, "/type") == "Warning";
    const std::string reason = TextAt(*event, "/reason");
    if ((!warns && reason != "Saved") || ++shown > kMaxJobEvents) continue;
    const std::string about = "event " + reason;
    std::string message = TextAt(*event, "/message");
    findings_.push_back(warns ? Warn(about, std::move(message),
                                     fmt::format("All events: kubectl get events -n {} "
                                                 "--field-selector involvedObject.name={}",
                                                 ns(), answers_.job.name))
                              : Fine(about, std::move(message)));
  }
}

Result<std::vector<PodOfJob>> ReadPods(const JobAnswers& answers) {
  std::vector<PodOfJob> pods;
  for (const PodAnswers& each : answers.pods) {
    ASSIGN_OR_RETURN(PodDiagnosis diagnosis, DiagnosePod(each));
    pods.push_back({.object = Json::parse(each.pod, nullptr, /*allow_exceptions=*/false),
                    .diagnosis = std::move(diagnosis)});
  }
  return pods;
}

// The streams of the job, in all those plans.
Result<std::vector<ReaderFact>> ReadersIn(const JobAnswers& answers,
                                          const std::vector<PodOfJob>& pods) {
  std::set<std::string, std::less<>> owners;
  for (const PodOfJob& pod : pods)
    owners.insert(StreamOwnerOf(pod.object));
  owners.erase("");
  const auto is_ours = [&](const std::string& stream) {
    if (!answers.job.stream.empty()) return stream == answers.job.stream;
    const auto parts = coordination::PartsOf(stream);
    return parts.name_space == answers.job.name_space &&
           (owners.contains(parts.owner) || coordination::JobOf(stream) == answers.job.name);
  };
  std::vector<ReaderFact> readers;
  for (const std::string& text : answers.plans) {
    ASSIGN_OR_RETURN(const Json list, kube::ParseList(text, "the answer about CachePlans"));
    for (const Json& object : Items(list, "/items")) {
      const auto plan = PlanResourceOf(object);
      if (!plan) continue;
      for (const PlanJob& job : plan->jobs) {
        if (is_ours(job.name)) readers.push_back(ReaderOf(job));
      }
    }
  }
  return readers;
}

}  // namespace

std::vector<std::string> PlanNamespacesOf(const JobAnswers& answers) {
  std::set<std::string> namespaces = {answers.job.name_space};
  for (const PodAnswers& pod : answers.pods) {
    for (const kube::ObjectKey& dataset : DatasetsOfPod(pod.pod))
      namespaces.insert(dataset.ns);
  }
  return {namespaces.begin(), namespaces.end()};
}

Finding FindingOnReads(const Reads& reads) {
  const std::optional<double> ratio = reads.HitRatio();
  if (!ratio) return Fine("samples", "none was read yet");
  return Fine("samples",
              fmt::format("{:.1f} % came from the cache ({} from the machine's own node, {} from "
                          "other nodes), {} from the store; training processes waited {:.1f} s",
                          *ratio * 100, reads.node, reads.peer, reads.store, reads.wait_seconds));
}

Result<Explanation> ExplainJob(const JobAnswers& answers) {
  ASSIGN_OR_RETURN(std::vector<PodOfJob> pods, ReadPods(answers));
  ASSIGN_OR_RETURN(const std::vector<ReaderFact> readers, ReadersIn(answers, pods));
  ASSIGN_OR_RETURN(const Json events,
                   kube::ParseList(answers.events.value_or(""), "the answer about Events"));
  const Json job = Json::parse(answers.batch_job.value_or(""), nullptr, /*allow_exceptions=*/false);
  Explanation explanation{.kind = "Job",
                          .name = answers.job.name_space + "/" + answers.job.name,
                          .verdict = "",
                          .findings = {}};
  JobTeller teller(answers, std::move(pods), explanation.findings);
  teller.TellJob(job);
  teller.TellPods(job);
  teller.TellInjection();
  teller.TellDatasets();
  teller.TellSidecars();
  teller.TellStreams(readers, answers.plans.size() == PlanNamespacesOf(answers).size());
  teller.TellReads();
  teller.TellEvents(events);
  explanation.findings.insert(explanation.findings.end(), answers.unseen.begin(),
                              answers.unseen.end());
  PutUrgentFirst(explanation.findings);
  explanation.verdict = VerdictFrom("Job " + explanation.name, explanation.findings);
  return explanation;
}

}  // namespace optcache::cli
