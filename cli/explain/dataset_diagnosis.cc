// Diagnoses a Dataset in a cluster, from what kubectl answered.
//
// The idea: each Tell* looks at one part, in the order in which causes come before effects: spec,
// index, placement, nodes, source, plan, hits, events. It adds findings and returns nothing, and
// PutUrgentFirst sorts them by severity and keeps that order. What to do stands in tables by the
// reason of a condition, so that a reason without advice is seen at a glance; an unknown reason
// gets `kubectl describe`. What could not be asked is a finding too (answers.unseen), so silence
// never looks like health. Begin to read at ExplainDataset, at the end.

#include "cli/explain/dataset_diagnosis.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "cli/cluster/plan_resource.h"
#include "cli/explain/reader_finding.h"
#include "cli/rollout/rollout_progress.h"
#include "cli/terminal/value_text.h"
#include "kube/conditions.h"
#include "kube/object.h"

namespace optcache::cli {
namespace {

using kube::Condition;
using kube::ConditionOf;
using kube::ConditionStatus;
using kube::CountAt;
using kube::Find;
using kube::Items;
using kube::Json;
using kube::NumberAt;
using kube::TextAt;

constexpr double kFarBelowPredicted = 0.05;  // as the alert OptcacheHitRatioBelowPredicted
constexpr std::size_t kMaxHoldersShown = 8;
constexpr std::size_t kMaxEventsShown = 3;

// What to do where a condition is not as it should be. {ns} and {name} are those of the Dataset,
// and kMarks has the others.
struct AdviceFor {
  std::string_view reason;
  const char* to_do;
};

// Words of advice that stand in several places.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kMarks = {
    std::pair{"{again}",
              "Then index it again: kubectl annotate dataset {name} -n {ns} --overwrite "
              "optcache.io/reindex=\"$(date +%s)\""},
    std::pair{"{index}", "-n {ns} -l optcache.io/dataset={name},app.kubernetes.io/component=index"},
    std::pair{"{nodes}",
              "kubectl get pods -A -l "
              "app.kubernetes.io/name=optcache,app.kubernetes.io/component=node"},
};

constexpr std::array kIndexAdvice = {
    AdviceFor{"Indexing", "Wait. To follow it, run: kubectl logs -f {index}"},
    AdviceFor{"SourceUnreachable",
              "Check the address in spec.source, and the network policies of namespace "
              "{ns}. {again}"},
    AdviceFor{"SourceForbidden",
              "Check the Secret of spec.source in namespace {ns}: the names of its fields, and the "
              "rights of its keys to list and to read. {again}"},
    AdviceFor{
        "SourceInvalid",
        "Check the paths, prefix, include and listing of spec.source: kubectl get dataset {name} "
        "-n {ns} -o yaml. {again}"},
    AdviceFor{"SourceChanged", "Wait until no program writes to the source. {again}"},
    AdviceFor{
        "SourceUnsupported",
        "Change spec.source or spec.format, or upgrade optcache to a version that can index it."},
    AdviceFor{
        "ManifestRefused",
        "If the list of samples is too large, raise node.stateSize or node.samples of the chart. "
        "Else look at: kubectl logs {index}"},
    AdviceFor{"NodesUnreachable",
              "Check the nodes, and the network policies between namespaces: {nodes}"},
    AdviceFor{"JobPending",
              "Remove what keeps its pod from starting: kubectl describe jobs,pods {index}"},
    AdviceFor{"IndexFailed", "Look at its log: kubectl logs {index}"},
};

constexpr std::array kPlaceAdvice = {
    AdviceFor{"NoNodes", "Check the nodes and their logs: {nodes}"},
    AdviceFor{"NoMatchingNode",
              "Compare spec.placement.nodeSelector with the labels of the nodes: kubectl get nodes "
              "--show-labels"},
    AdviceFor{
        "NoMemory",
        "Raise node.memory of the chart, or uncordon nodes. To see them, run: kubectl get nodes"},
    AdviceFor{"TooManyDatasets", "Delete Datasets that no job reads: kubectl get datasets -A"},
};

constexpr std::array kDegradedAdvice = {
    AdviceFor{
        "CapacityNotGranted",
        "Raise node.memory of the chart or add nodes, lower spec.cache.capacity of this or other "
        "Datasets, or set spec.cache.minCapacity. To see which Dataset has how much, run: kubectl "
        "optcache datasets du -A"},
    AdviceFor{"OrderUnknown",
              "Give all ranks of the job the same seed and settings, and start it again."},
    AdviceFor{"PlanInvalid",
              "Correct the field that the message names: kubectl edit cacheplan -n {ns}"},
    AdviceFor{"PlansDiffer", "Please report this. Training continues."},
};

void Replace(std::string_view mark, std::string_view words, std::string& text) {
  for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += words.size())
    text.replace(at, mark.size(), words);
}

// One Dataset and what is found about it.
class DatasetTeller {
 public:
  DatasetTeller(const Json& dataset, std::vector<Finding>& findings)
      : dataset_(dataset),
        status_(Find(dataset, "/status")),
        key_(kube::KeyOf(dataset)),
        findings_(findings) {}

  void TellSpec();
  void TellIndex();
  void TellPlacement();
  void TellNodes(const Json& pods);
  void TellSource();
  void TellDegraded();
  void TellHits();
  void TellSaved();
  void TellWarmups(const Json& list);
  void TellEvents(const Json& list);

 private:
  Condition Of(std::string_view type) const { return ConditionOf(dataset_, type); }
  bool Is(std::string_view type, ConditionStatus status) const {
    return Of(type).status == status && !Of(type).reason.empty();
  }
  // "SourceForbidden: it refused the keys (since 2026-01-05T10:00:00Z)".
  std::string Words(std::string_view type) const;
  template <std::size_t N>
  std::string Advise(const std::array<AdviceFor, N>& table, std::string_view reason) const;
  std::string Filled(std::string_view text) const;
  std::string BytesText(std::string_view pointer) const {
    return FormatBytes(CountAt(status_, pointer));
  }

  const Json& dataset_;
  const Json& status_;
  kube::ObjectKey key_;
  std::vector<Finding>& findings_;
};

std::string DatasetTeller::Words(std::string_view type) const {
  const Condition condition = Of(type);
  std::string text = fmt::format("{}: {}", condition.reason, condition.message);
  for (const Json& each : Items(status_, "/conditions")) {
    if (TextAt(each, "/type") != type || TextAt(each, "/lastTransitionTime").empty()) continue;
    text += fmt::format(" (since {})", TextAt(each, "/lastTransitionTime"));
  }
  return text;
}

std::string DatasetTeller::Filled(std::string_view text) const {
  std::string filled(text);
  for (const auto& [mark, words] : kMarks)
    Replace(mark, words, filled);
  Replace("{ns}", key_.ns, filled);
  Replace("{name}", key_.name, filled);
  return filled;
}

template <std::size_t N>
std::string DatasetTeller::Advise(const std::array<AdviceFor, N>& table,
                                  std::string_view reason) const {
  const auto found = std::ranges::find(table, reason, &AdviceFor::reason);
  return Filled(found != table.end() ? found->to_do
                                     : "Look at it: kubectl describe dataset {name} -n {ns}");
}

void DatasetTeller::TellSpec() {
  const auto leader =
      "Look at the operator: kubectl get pods -A -l "
      "app.kubernetes.io/name=optcache,app.kubernetes.io/component=operator";
  if (Items(status_, "/conditions").empty()) {
    findings_.push_back(Fault("operator", "it has not looked at this Dataset yet", leader));
  } else if (Is("Invalid", ConditionStatus::kTrue)) {
    findings_.push_back(
        Fault("spec", Words("Invalid"), Filled("Correct it: kubectl edit dataset {name} -n {ns}")));
  } else if (const std::int64_t seen = NumberAt(status_, "/observedGeneration").value_or(0);
             seen < kube::GenerationOf(dataset_) && Of("Indexed").reason != "Indexing") {
    findings_.push_back(
        Warn("operator",
             fmt::format("the newest change of the spec is not in force: generation {} is, and "
                         "the newest is {}",
                         seen, kube::GenerationOf(dataset_)),
             leader));
  }
}

void DatasetTeller::TellIndex() {
  if (Is("Indexed", ConditionStatus::kTrue)) {
    findings_.push_back(Fine("index", Of("Indexed").message));
  } else if (Is("Indexed", ConditionStatus::kFalse)) {
    Finding finding = Fault("index", Words("Indexed"), Advise(kIndexAdvice, Of("Indexed").reason));
    if (Of("Indexed").reason == "Indexing") finding.severity = Severity::kWarning;
    findings_.push_back(std::move(finding));
  }
  if (Is("Stale", ConditionStatus::kTrue)) {
    findings_.push_back(
        Fault("list of samples", Words("Stale"), Advise(kIndexAdvice, Of("Stale").reason)));
  }
  if (Is("ManifestLost", ConditionStatus::kTrue)) {
    findings_.push_back(Fault("list of samples", Words("ManifestLost"),
                              "Wait. If it happens often, set node.stateVolume of the chart to a "
                              "volume that outlives the pod."));
  }
}

void DatasetTeller::TellPlacement() {
  const Condition placed = Of("Placed");
  if (Is("Placed", ConditionStatus::kFalse) && placed.reason != "NotIndexed") {
    findings_.push_back(Fault("placement", Words("Placed"), Advise(kPlaceAdvice, placed.reason)));
  }
  if (!Is("Placed", ConditionStatus::kTrue)) return;
  findings_.push_back(Fine("placement", placed.message));
  std::string memory = fmt::format("{} granted", BytesText("/capacity/granted"));
  if (CountAt(status_, "/capacity/maximum") > 0)
    memory += fmt::format(" of {} asked for", BytesText("/capacity/maximum"));
  if (CountAt(status_, "/capacity/onDisk") > 0)
    memory += fmt::format(", of it {} on disk", BytesText("/capacity/onDisk"));
  memory += fmt::format("; {} are cached", BytesText("/cachedBytes"));
  const Json& holders = Items(status_, "/nodes");
  for (std::size_t i = 0; i < std::min(holders.size(), kMaxHoldersShown); ++i) {
    memory += fmt::format("{}{} {}", i == 0 ? ": " : ", ", TextAt(holders[i], "/name"),
                          FormatBytes(CountAt(holders[i], "/bytes")));
  }
  if (holders.size() > kMaxHoldersShown)
    memory += fmt::format(", and {} more nodes", holders.size() - kMaxHoldersShown);
  findings_.push_back(Fine("memory", std::move(memory)));
}

void DatasetTeller::TellNodes(const Json& pods) {
  const Json& all = Items(pods, "/items");
  std::string down;
  std::size_t count = 0;
  for (const Json& pod : all) {
    if (ConditionOf(pod, "Ready").status == ConditionStatus::kTrue) continue;
    if (++count > kMaxHoldersShown) continue;
    const std::string machine = TextAt(pod, "/spec/nodeName");
    down += fmt::format("{}{}{}", down.empty() ? "" : ", ", TextAt(pod, "/metadata/name"),
                        machine.empty() ? "" : " on " + machine);
  }
  if (count == 0) return;
  if (count > kMaxHoldersShown) down += fmt::format(", and {} more", count - kMaxHoldersShown);
  findings_.push_back(Warn(
      "nodes",
      fmt::format("{} of {} nodes of the cache are not ready: {}", count, all.size(), down),
      "What these nodes held is read from the source. To see why, run: kubectl describe pods -A -l "
      "app.kubernetes.io/name=optcache,app.kubernetes.io/component=node"));
}

void DatasetTeller::TellSource() {
  const Condition source = Of("SourceReachable");
  if (source.reason.empty() || source.reason == "NotTried") return;
  if (source.status == ConditionStatus::kTrue) {
    findings_.push_back(Fine("source", source.message));
  } else if (source.reason == "NotAsked") {
    findings_.push_back(Warn("source", Words("SourceReachable"),
                             "Nothing: the next pod that reads the source finds out."));
  } else if (source.reason != Of("Indexed").reason) {
    findings_.push_back(Fault(
        "source", Words("SourceReachable"),
        Filled("Reads that are not cached wait for it. Try it from a pod of namespace {ns}. If "
               "only some machines are affected, look at their network.")));
  }
}

void DatasetTeller::TellDegraded() {
  if (!Is("Degraded", ConditionStatus::kTrue)) return;
  findings_.push_back(
      Warn("degraded", Words("Degraded"), Advise(kDegradedAdvice, Of("Degraded").reason)));
}

void DatasetTeller::TellHits() {
  const std::string observed = TextAt(status_, "/hitRatio");
  const std::string predicted = TextAt(status_, "/predictedHitRatio");
  if (observed.empty()) {
    findings_.push_back(Fine("hit ratio", "no job has read a whole pass yet"));
    return;
  }
  const std::string text = fmt::format(
      "{} of the reads of the last whole passes came from the cache{}", PercentText(observed),
      predicted.empty() ? ", and nothing was predicted of them"
                        : fmt::format("; {} were predicted", PercentText(predicted)));
  const bool is_low =
      !predicted.empty() && std::strtod(observed.c_str(), nullptr) + kFarBelowPredicted <
                                std::strtod(predicted.c_str(), nullptr);
  if (!is_low) {
    findings_.push_back(Fine("hit ratio", text));
    return;
  }
  findings_.push_back(
      Warn("hit ratio", text,
           "Look for nodes that have restarted, memory that was taken away, and jobs that read in "
           "another order than they announced: kubectl optcache status. If arenas hold a fifth of "
           "the Dataset or more, make optcache.io/arena smaller."));
}

void DatasetTeller::TellSaved() {
  const Json& saved = Find(status_, "/saved");
  if (!saved.is_object()) return;
  const std::string cost = TextAt(saved, "/cost");
  findings_.push_back(Fine(
      "saved", fmt::format("{} requests and {}{} since the Dataset was made; training processes "
                           "have waited {} s for samples",
                           TextAt(saved, "/requests"),
                           FormatSignedBytes(NumberAt(saved, "/bytes").value_or(0)),
                           cost.empty() ? "" : ", worth " + cost + ",",
                           NumberAt(saved, "/waitedSeconds").value_or(0))));
}

void DatasetTeller::TellWarmups(const Json& list) {
  for (const Json& warmup : Items(list, "/items")) {
    if (TextAt(warmup, "/spec/dataset") != key_.name) continue;
    const std::string name = kube::KeyOf(warmup).name;
    const std::string about = "warm-up " + name;
    const Condition failed = ConditionOf(warmup, "Failed");
    const Condition complete = ConditionOf(warmup, "Complete");
    if (failed.status == ConditionStatus::kTrue) {
      findings_.push_back(
          Warn(about, fmt::format("{}: {}", failed.reason, failed.message),
               Filled(fmt::format("Correct the cause. Then delete the Warmup and create it again; "
                                  "what was read is not read again: kubectl delete warmup {} -n "
                                  "{{ns}}",
                                  name))));
      continue;
    }
    const std::string progress = TextAt(warmup, "/status/progress");
    findings_.push_back(
        Fine(about,
             fmt::format("{}{}: {}",
                         complete.reason.empty() ? "no operator has looked at it" : complete.reason,
                         progress.empty() ? "" : " (" + progress + ")", complete.message)));
  }
}

void DatasetTeller::TellEvents(const Json& list) {
  std::size_t shown = 0;
  for (const Json& event : Items(list, "/items")) {
    // Other Events repeat conditions.
    if (TextAt(event, "/reason") != "ApplyFailed" || ++shown > kMaxEventsShown) continue;
    findings_.push_back(Warn("event ApplyFailed", TextAt(event, "/message"),
                             "The message has the words of a quota or of an admission webhook of "
                             "another program. Change that one."));
  }
}

// The one that the Dataset follows, before others that name it.
void TellPlans(const Json& list, const kube::ObjectKey& dataset, std::vector<Finding>& findings) {
  bool any = false;
  std::vector<ReaderFact> readers;
  for (const Json& object : Items(list, "/items")) {
    if (TextAt(object, "/spec/dataset") != dataset.name) continue;
    const auto plan = PlanResourceOf(object);
    if (!plan) continue;
    any = true;
    const std::string about = "plan " + plan->name;
    const bool is_used = plan->available.reason != "AnotherPlan";
    if (is_used)
      findings.push_back(Fine(
          about, fmt::format("retention {}, revision {}; {} of {} nodes follow it",
                             TextAt(plan->content, "/retention"),
                             plan->current.empty() ? "none yet" : HashOfRevision(plan->current),
                             plan->active, plan->desired)));
    const RolloutProgress rollout = TellRollout(*plan, {});
    const bool failed = rollout.outcome == RolloutOutcome::kFailed;
    const bool says_more = rollout.outcome != RolloutOutcome::kSucceeded || !rollout.advice.empty();
    if (failed) {
      findings.push_back(Warn(
          "rollout of " + plan->name, rollout.line,
          rollout.advice.empty()
              ? fmt::format("kubectl describe cacheplan {} -n {}", plan->name, plan->name_space)
              : rollout.advice));
    } else if (says_more) {
      findings.push_back(Fine("rollout of " + plan->name, rollout.line));
      findings.back().to_do = rollout.advice;
    }
    for (const PlanJob& job : plan->jobs)
      readers.push_back(ReaderOf(job));
  }
  if (!any) {
    findings.push_back(
        Fine("plan", "no CachePlan names this Dataset, so the defaults are in force"));
    return;
  }
  if (readers.empty()) {
    findings.push_back(Fine("streams", "no job reads it now"));
    findings.back().to_do =
        fmt::format("If a job should, run: kubectl optcache explain job NAME -n {}", dataset.ns);
  }
  AddFindingsOnReaders(readers, findings);
}

Result<Json> ListOr(const std::optional<std::string>& text, const char* what) {
  return kube::ParseList(text.value_or(""), what);
}

std::string VerdictOn(const Json& dataset) {
  const Condition ready = ConditionOf(dataset, "Ready");
  const std::string name = kube::KeyOf(dataset).ToString();
  if (ready.status == ConditionStatus::kTrue) return fmt::format("Dataset {} is Ready.", name);
  if (ready.reason.empty()) return fmt::format("Dataset {} is not Ready.", name);
  return fmt::format("Dataset {} is not Ready ({}).", name, ready.reason);
}

}  // namespace

Result<Explanation> ExplainDataset(const DatasetAnswers& answers) {
  const Json dataset = Json::parse(answers.dataset, nullptr, /*allow_exceptions=*/false);
  if (!Find(dataset, "/metadata").is_object())
    return Error(Code::kInvalidArgument, "what kubectl printed is not a Dataset");
  ASSIGN_OR_RETURN(const Json plans, ListOr(answers.plans, "the answer about CachePlans"));
  ASSIGN_OR_RETURN(const Json warmups, ListOr(answers.warmups, "the answer about Warmups"));
  ASSIGN_OR_RETURN(const Json node_pods, ListOr(answers.node_pods, "the answer about pods"));
  ASSIGN_OR_RETURN(const Json events, ListOr(answers.events, "the answer about Events"));
  Explanation explanation{.kind = "Dataset",
                          .name = kube::KeyOf(dataset).ToString(),
                          .verdict = VerdictOn(dataset),
                          .findings = {}};
  DatasetTeller teller(dataset, explanation.findings);
  teller.TellSpec();
  teller.TellIndex();
  teller.TellPlacement();
  teller.TellNodes(node_pods);
  teller.TellSource();
  teller.TellDegraded();
  if (answers.plans) TellPlans(plans, kube::KeyOf(dataset), explanation.findings);
  teller.TellHits();
  teller.TellSaved();
  teller.TellWarmups(warmups);
  teller.TellEvents(events);
  explanation.findings.insert(explanation.findings.end(), answers.unseen.begin(),
                              answers.unseen.end());
  PutUrgentFirst(explanation.findings);
  return explanation;
}

}  // namespace optcache::cli
