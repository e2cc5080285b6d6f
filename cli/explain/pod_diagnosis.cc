// Tells of a training pod what can be told from the answers that the user's rights allow.
//
// An answer that could not be had is nullopt, and no conclusion is drawn from it; an empty one says
// that there is nothing. WhyNot gives the first reason that fits, in the order in which the API
// server and the injector would have met it: label, annotation, injector, Dataset. All of it is
// pure; pod_questions.cc asks kubectl.

#include "cli/explain/pod_diagnosis.h"

#include <string_view>

#include <fmt/format.h>

#include "base/bytes.h"
#include "cli/local/metrics_text.h"
#include "kube/conditions.h"
#include "kube/object.h"

namespace optcache::cli {
namespace {

using kube::AnnotationOf;
using kube::ConditionOf;
using kube::ConditionStatus;
using kube::Find;
using kube::Items;
using kube::Json;
using kube::KeyOf;
using kube::LabelOf;
using kube::NumberAt;
using kube::ParseList;
using kube::TextAt;

constexpr const char* kLabel = "optcache.io/inject";
constexpr const char* kDatasets = "optcache.io/dataset";
constexpr const char* kInjected = "optcache.io/injected";
constexpr const char* kOptional = "optcache.io/optional";
constexpr const char* kMissing = "does not exist";
constexpr const char* kUnseen = "cannot be seen with your rights";
constexpr std::size_t kMaxDatasets = 16;  // the injector refuses pods with more
constexpr std::string_view kSidecar = "optcache-sidecar";

const Json* FindNamed(const Json& items, std::string_view name) {
  for (const Json& item : items) {
    if (TextAt(item, "/name") == name) return &item;
  }
  return nullptr;
}

std::vector<kube::ObjectKey> DatasetKeys(const Json& pod) {
  const std::string list = AnnotationOf(pod, kDatasets).value_or("");
  std::vector<kube::ObjectKey> keys;
  for (std::size_t at = 0; at < list.size() && keys.size() < kMaxDatasets;) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    std::string name = list.substr(at, comma - at);
    name.erase(0, name.find_first_not_of(' '));
    name.erase(name.find_last_not_of(' ') + 1);
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos) {
      keys.push_back({.ns = KeyOf(pod).ns, .name = std::move(name)});
    } else {
      keys.push_back({.ns = name.substr(0, slash), .name = name.substr(slash + 1)});
    }
    at = comma + 1;
  }
  return keys;
}

DatasetDiagnosis TellDataset(const DatasetAnswer& answer) {
  if (!answer.json) return {.name = answer.name, .verdict = kUnseen};
  if (answer.json->empty()) return {.name = answer.name, .verdict = kMissing};
  const Json dataset = Json::parse(*answer.json, nullptr, /*allow_exceptions=*/false);
  const kube::Condition ready = ConditionOf(dataset, "Ready");
  if (ready.status == ConditionStatus::kTrue) return {.name = answer.name, .verdict = "Ready"};
  const std::string why = ready.reason.empty() ? "no operator has looked at it" : ready.message;
  const std::string reason = ready.reason.empty() ? "" : fmt::format(" ({})", ready.reason);
  return {.name = answer.name, .verdict = fmt::format("not Ready{}: {}", reason, why)};
}

// Whether its namespaceSelector leaves pods of `ns` alone.
bool Excludes(const Json& webhook, std::string_view ns) {
  for (const Json& rule : Items(webhook, "/namespaceSelector/matchExpressions")) {
    if (TextAt(rule, "/operator") != "NotIn") continue;
    for (const Json& value : Items(rule, "/values")) {
      if (value == ns) return true;
    }
  }
  return false;
}

// What is to be said of the injectors themselves; empty: nothing stands in the way now.
std::string WhyNotAsked(const Json& injectors, std::string_view ns, bool labelled) {
  const Json& webhooks = Items(injectors, "/items/0/webhooks");
  if (webhooks.empty()) return "no injector of optcache is in this cluster";
  bool by_annotation = false;
  for (const Json& webhook : webhooks) {
    if (Excludes(webhook, ns))
      return fmt::format("the injector leaves pods of namespace {} alone", ns);
    if (TextAt(webhook, "/clientConfig/caBundle").empty())
      return "the injector has no certificate yet: the operator has not written it";
    by_annotation = by_annotation || TextAt(webhook, "/name").starts_with("annotation.");
  }
  if (labelled || by_annotation) return "";
  return R"(it has no label optcache.io/inject: "true", and here the annotation is not enough)";
}

// Why a pod that could have been injected was not: the first reason that fits.
std::string WhyNot(const Json& pod, const PodDiagnosis& diagnosis,
                   const std::optional<Json>& injectors) {
  const std::string label = LabelOf(pod, kLabel).value_or("");
  if (label == "false") return "its label optcache.io/inject is \"false\"";
  if (label != "true" && diagnosis.datasets.empty()) {
    return "it has no label optcache.io/inject: \"true\" and no annotation optcache.io/dataset";
  }
  if (diagnosis.datasets.empty()) return "it has no annotation optcache.io/dataset";
  if (injectors) {
    std::string why = WhyNotAsked(*injectors, KeyOf(pod).ns, label == "true");
    if (!why.empty()) return why;
  }
  const bool optional = AnnotationOf(pod, kOptional).value_or("") == "true";
  for (const DatasetDiagnosis& dataset : diagnosis.datasets) {
    if (optional && dataset.verdict == kMissing) {
      return fmt::format("Dataset {} does not exist, and the pod says that it is optional",
                         dataset.name);
    }
  }
  return fmt::format(
      "the injector did not answer when it was created{}, or came later; pods are "
      "injected only when they are created",
      optional ? ", or refused it, which optcache.io/optional lets pass" : "");
}

std::string TellSidecar(const Json& pod) {
  const Json& status = Find(pod, "/status");
  const Json* found = FindNamed(Items(status, "/initContainerStatuses"), kSidecar);
  if (found == nullptr) found = FindNamed(Items(status, "/containerStatuses"), kSidecar);
  if (found == nullptr) return "not started yet";
  const Json& state = Find(*found, "/state");
  std::string text;
  if (state.contains("running")) text = "running";
  if (const Json& waiting = Find(state, "/waiting"); !waiting.is_null())
    text = fmt::format("waiting ({}): {}", TextAt(waiting, "/reason"), TextAt(waiting, "/message"));
  if (const Json& ended = Find(state, "/terminated"); !ended.is_null())
    text = fmt::format("ended with status {} ({})", TextAt(ended, "/exitCode"),
                       TextAt(ended, "/reason"));
  const std::int64_t restarts = NumberAt(*found, "/restartCount").value_or(0);
  return restarts == 0 ? text : fmt::format("{}, {} restarts", text, restarts);
}

// A sentence; whether one is ready there goes into `has_node`.
std::string TellNode(const Json& pod, const std::optional<Json>& node_pods,
                     std::optional<bool>& has_node) {
  const std::string machine = TextAt(pod, "/spec/nodeName");
  if (machine.empty()) {
    const std::string why = ConditionOf(pod, "PodScheduled").message;
    return why.empty() ? "the pod has no machine yet" : "the pod has no machine yet: " + why;
  }
  if (!node_pods) return "whether an optcache node is there cannot be seen with your rights";
  for (const Json& node : Items(*node_pods, "/items")) {
    if (TextAt(node, "/spec/nodeName") != machine) continue;
    const bool ready = ConditionOf(node, "Ready").status == ConditionStatus::kTrue;
    has_node = ready;
    return fmt::format("{} is {}ready there", TextAt(node, "/metadata/name"), ready ? "" : "not ");
  }
  has_node = false;
  return "no optcache node is there: the sidecar reads from the store";
}

std::optional<Computed> ComputedIn(const std::vector<MetricSample>& metrics) {
  const auto reads = [&](std::string_view result) {
    return ToWhole<std::uint64_t>(
        SumOf(metrics, "optcache_computed_reads_total", "result", result));
  };
  const auto bytes = [&](std::string_view name) {
    return ToWhole<std::uint64_t>(SumOf(metrics, name));
  };
  const Computed computed{.hits = reads("hit"),
                          .misses = reads("miss"),
                          .bytes = bytes("optcache_computed_bytes"),
                          .capacity = bytes("optcache_computed_capacity_bytes")};
  if (computed.capacity == 0) return std::nullopt;
  return computed;
}

std::string ToText(const Computed& computed) {
  const std::uint64_t reads = computed.hits + computed.misses;
  const std::string room =
      fmt::format("{} of {} in use", FormatBytes(computed.bytes), FormatBytes(computed.capacity));
  if (reads == 0) return "none asked for yet; " + room;
  return fmt::format("{:.1f} % found, {} computed; {}",
                     100.0 * static_cast<double>(computed.hits) / static_cast<double>(reads),
                     computed.misses, room);
}

void Advise(const Json& pod, PodDiagnosis& diagnosis) {
  for (const DatasetDiagnosis& dataset : diagnosis.datasets) {
    if (dataset.verdict == "Ready" || dataset.verdict == kUnseen) continue;
    const std::size_t slash = dataset.name.find('/');
    diagnosis.advice.push_back(fmt::format("kubectl describe dataset.optcache.io -n {} {}",
                                           dataset.name.substr(0, slash),
                                           dataset.name.substr(slash + 1)));
  }
  const Json& metadata = Find(pod, "/metadata");
  if (diagnosis.injected && !diagnosis.reads) {
    diagnosis.advice.push_back(fmt::format("kubectl logs -n {} {} -c {}",
                                           TextAt(metadata, "/namespace"),
                                           TextAt(metadata, "/name"), kSidecar));
  }
}

// nullopt: could not be had.
Result<std::optional<Json>> ReadList(const std::optional<std::string>& text, const char* what) {
  if (!text) return std::nullopt;
  ASSIGN_OR_RETURN(Json list, ParseList(*text, what));
  return list;
}

}  // namespace

const Json* SidecarIn(const Json& pod) {
  const Json& spec = Find(pod, "/spec");
  const Json* const found = FindNamed(Items(spec, "/initContainers"), kSidecar);
  return found != nullptr ? found : FindNamed(Items(spec, "/containers"), kSidecar);
}

std::vector<kube::ObjectKey> DatasetsOfPod(std::string_view pod) {
  return DatasetKeys(Json::parse(pod, nullptr, /*allow_exceptions=*/false));
}

std::optional<double> Reads::HitRatio() const {
  const std::uint64_t all = node + peer + store;
  if (all == 0) return std::nullopt;
  return static_cast<double>(node + peer) / static_cast<double>(all);
}

Reads& Reads::operator+=(const Reads& other) {
  node += other.node;
  peer += other.peer;
  store += other.store;
  wait_seconds += other.wait_seconds;
  return *this;
}

Reads ReadsIn(const std::vector<MetricSample>& metrics) {
  const auto samples = [&](std::string_view source) {
    return ToWhole<std::uint64_t>(
        SumOf(metrics, "optcache_client_samples_total", "source", source));
  };
  return Reads{.node = samples("local"),
               .peer = samples("peer"),
               .store = samples("store"),
               .wait_seconds = SumOf(metrics, "optcache_client_wait_seconds_total")};
}

Result<PodDiagnosis> DiagnosePod(const PodAnswers& answers) {
  const Json pod = Json::parse(answers.pod, nullptr, /*allow_exceptions=*/false);
  if (!Find(pod, "/metadata").is_object()) {
    return Error(Code::kInvalidArgument, "what kubectl printed is not a pod");
  }
  ASSIGN_OR_RETURN(const std::optional<Json> node_pods, ReadList(answers.node_pods, "pods"));
  ASSIGN_OR_RETURN(const std::optional<Json> injectors,
                   ReadList(answers.injectors, "webhook configurations"));
  PodDiagnosis diagnosis{.name = KeyOf(pod).ToString(), .machine = TextAt(pod, "/spec/nodeName")};
  if (answers.metrics) {
    const std::vector<MetricSample> metrics = ParseMetrics(*answers.metrics);
    diagnosis.reads = ReadsIn(metrics);
    diagnosis.computed = ComputedIn(metrics);
  }
  for (const DatasetAnswer& dataset : answers.datasets)
    diagnosis.datasets.push_back(TellDataset(dataset));
  const std::string version = AnnotationOf(pod, kInjected).value_or("");
  diagnosis.injected = SidecarIn(pod) != nullptr;
  diagnosis.node = TellNode(pod, node_pods, diagnosis.has_node);
  if (diagnosis.injected) {
    diagnosis.why = version.empty() ? "it brought the container itself" : "by injector " + version;
    diagnosis.sidecar = TellSidecar(pod);
    diagnosis.sidecar_runs = diagnosis.sidecar.starts_with("running");
  } else {
    diagnosis.why = WhyNot(pod, diagnosis, injectors);
  }
  Advise(pod, diagnosis);
  return diagnosis;
}

std::string FormatPodDiagnosis(const PodDiagnosis& diagnosis) {
  std::string text = fmt::format("Pod {}\n", diagnosis.name);
  const auto line = [&text](std::string_view head, std::string_view what) {
    text += fmt::format("  {:<10}{}\n", head, what);
  };
  line("Injected", fmt::format("{}: {}", diagnosis.injected ? "yes" : "no", diagnosis.why));
  for (const DatasetDiagnosis& dataset : diagnosis.datasets)
    line("Dataset", fmt::format("{}, {}", dataset.name, dataset.verdict));
  line("Machine", diagnosis.machine.empty()
                      ? diagnosis.node
                      : fmt::format("{}: {}", diagnosis.machine, diagnosis.node));
  if (!diagnosis.sidecar.empty()) line("Sidecar", diagnosis.sidecar);
  if (diagnosis.reads) {
    const Reads& reads = *diagnosis.reads;
    const std::optional<double> ratio = reads.HitRatio();
    line("Reads", ratio ? fmt::format("{:.1f} % from the cache ({} from this machine's node, {} "
                                      "from others), {} from the store",
                                      *ratio * 100, reads.node, reads.peer, reads.store)
                        : "none yet");
    line("Waited", fmt::format("{:.1f} s", reads.wait_seconds));
  }
  if (diagnosis.computed) line("Computed", ToText(*diagnosis.computed));
  for (std::size_t i = 0; i < diagnosis.advice.size(); ++i)
    text += (i == 0 ? "\nNext:\n  " : "  ") + diagnosis.advice[i] + "\n";
  return text;
}

std::string ToJson(const PodDiagnosis& diagnosis) {
  nlohmann::ordered_json json = {{"name", diagnosis.name},   {"injected", diagnosis.injected},
                                 {"why", diagnosis.why},     {"machine", diagnosis.machine},
                                 {"node", diagnosis.node},   {"sidecar", diagnosis.sidecar},
                                 {"datasets", Json::array()}};
  for (const DatasetDiagnosis& dataset : diagnosis.datasets)
    json["datasets"].push_back({{"name", dataset.name}, {"verdict", dataset.verdict}});
  if (diagnosis.reads) {
    json["reads"] = {{"node", diagnosis.reads->node},
                     {"peer", diagnosis.reads->peer},
                     {"store", diagnosis.reads->store},
                     {"waitSeconds", diagnosis.reads->wait_seconds}};
    if (const auto ratio = diagnosis.reads->HitRatio()) json["reads"]["hitRatio"] = *ratio;
  }
  if (diagnosis.computed) {
    json["computed"] = {{"hits", diagnosis.computed->hits},
                        {"misses", diagnosis.computed->misses},
                        {"bytes", diagnosis.computed->bytes},
                        {"capacity", diagnosis.computed->capacity}};
  }
  json["advice"] = diagnosis.advice;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace optcache::cli
