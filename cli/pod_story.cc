#include "cli/pod_story.h"

#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

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
constexpr std::string_view kSidecar = "optcache-sidecar";

const Json* FindNamed(const Json& items, std::string_view name) {
  for (const Json& item : items) {
    if (TextAt(item, "/name") == name) return &item;
  }
  return nullptr;
}

// Native or, on old clusters, ordinary.
const Json* SidecarIn(const Json& pod) {
  const Json& spec = Find(pod, "/spec");
  const Json* const found = FindNamed(Items(spec, "/initContainers"), kSidecar);
  return found != nullptr ? found : FindNamed(Items(spec, "/containers"), kSidecar);
}

std::vector<std::string> DatasetNames(const Json& pod) {
  const Json& metadata = Find(pod, "/metadata");
  const std::string list = AnnotationOf(pod, kDatasets).value_or("");
  std::vector<std::string> names;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    std::string name = list.substr(at, comma - at);
    name.erase(0, name.find_first_not_of(' '));
    name.erase(name.find_last_not_of(' ') + 1);
    if (!name.contains('/')) name = TextAt(metadata, "/namespace") + "/" + name;
    names.push_back(std::move(name));
    at = comma + 1;
  }
  return names;
}

DatasetStory TellDataset(const std::string& name, const Json& datasets) {
  for (const Json& dataset : Items(datasets, "/items")) {
    if (KeyOf(dataset).ToString() != name) continue;
    const kube::Condition ready = ConditionOf(dataset, "Ready");
    if (ready.status == ConditionStatus::kTrue) return {.name = name, .verdict = "Ready"};
    return {.name = name,
            .verdict = fmt::format("not Ready ({}): {}", ready.reason, ready.message)};
  }
  return {.name = name, .verdict = "does not exist"};
}

// Why a pod that could have been injected was not: the first reason that fits.
std::string WhyNot(const Json& pod, const PodStory& story, const Json& injectors) {
  const std::string label = LabelOf(pod, kLabel).value_or("");
  if (label == "false") return "its label optcache.io/inject is \"false\"";
  if (label != "true" && story.datasets.empty()) {
    return "it has no label optcache.io/inject: \"true\" and no annotation optcache.io/dataset";
  }
  if (story.datasets.empty()) return "it has no annotation optcache.io/dataset";
  if (Items(injectors, "/items").empty()) return "no injector of optcache is in this cluster";
  for (const DatasetStory& dataset : story.datasets) {
    if (dataset.verdict == "does not exist") {
      return fmt::format("Dataset {} does not exist, and the pod says that it is optional",
                         dataset.name);
    }
  }
  for (const Json& webhook : Items(injectors, "/items/0/webhooks")) {
    if (TextAt(webhook, "/clientConfig/caBundle").empty()) {
      return "the injector has no certificate yet: the operator has not written it";
    }
  }
  return "the injector did not answer when it was created, or came later; pods are injected only "
         "when they are created";
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

std::string TellNode(const std::string& machine, const Json& node_pods) {
  if (machine.empty()) return "the pod has no machine yet";
  for (const Json& pod : Items(node_pods, "/items")) {
    if (TextAt(pod, "/spec/nodeName") != machine) continue;
    const bool ready = ConditionOf(pod, "Ready").status == ConditionStatus::kTrue;
    return fmt::format("{} is {}ready there", TextAt(pod, "/metadata/name"), ready ? "" : "not ");
  }
  return "no optcache node is there: the sidecar reads from the store";
}

// The value of `name{...label="value"...}` in Prometheus text, summed over the other labels.
double Sum(std::string_view metrics, std::string_view name, std::string_view label) {
  double sum = 0;
  for (std::size_t at = 0; at < metrics.size();) {
    const std::size_t end = std::min(metrics.find('\n', at), metrics.size());
    const std::string line(metrics.substr(at, end - at));
    at = end + 1;
    const bool named = line.starts_with(name) && line.size() > name.size() &&
                       (line[name.size()] == '{' || line[name.size()] == ' ');
    if (!named || (!label.empty() && !line.contains(label))) continue;
    sum += std::strtod(line.c_str() + line.rfind(' '), nullptr);
  }
  return sum;
}

std::optional<Reads> ReadReads(const std::string& metrics) {
  if (metrics.empty()) return std::nullopt;
  const auto samples = [&](std::string_view source) {
    return static_cast<std::uint64_t>(Sum(metrics, "optcache_client_samples_total", source));
  };
  return Reads{.node = samples("source=\"node\""),
               .peer = samples("source=\"peer\""),
               .store = samples("source=\"store\""),
               .wait_seconds = Sum(metrics, "optcache_client_wait_seconds_total", "")};
}

void Advise(const Json& pod, PodStory& story) {
  for (const DatasetStory& dataset : story.datasets) {
    if (dataset.verdict == "Ready") continue;
    const std::size_t slash = dataset.name.find('/');
    story.advice.push_back(fmt::format("kubectl describe dataset.optcache.io -n {} {}",
                                       dataset.name.substr(0, slash),
                                       dataset.name.substr(slash + 1)));
  }
  const Json& metadata = Find(pod, "/metadata");
  if (story.injected && !story.reads) {
    story.advice.push_back(fmt::format("kubectl logs -n {} {} -c {}",
                                       TextAt(metadata, "/namespace"), TextAt(metadata, "/name"),
                                       kSidecar));
  }
}

}  // namespace

std::optional<double> Reads::HitRatio() const {
  const std::uint64_t all = node + peer + store;
  if (all == 0) return std::nullopt;
  return static_cast<double>(node + peer) / static_cast<double>(all);
}

Result<PodStory> TellPodStory(const PodAnswers& answers) {
  const Json pod = Json::parse(answers.pod, nullptr, /*allow_exceptions=*/false);
  if (!Find(pod, "/metadata").is_object()) {
    return Error(Code::kInvalidArgument, "what kubectl printed is not a pod");
  }
  ASSIGN_OR_RETURN(const Json datasets, ParseList(answers.datasets, "Datasets"));
  ASSIGN_OR_RETURN(const Json node_pods, ParseList(answers.node_pods, "pods"));
  ASSIGN_OR_RETURN(const Json injectors, ParseList(answers.injectors, "webhook configurations"));
  PodStory story{.name = KeyOf(pod).ToString(),
                 .machine = TextAt(pod, "/spec/nodeName"),
                 .reads = ReadReads(answers.metrics)};
  for (const std::string& name : DatasetNames(pod))
    story.datasets.push_back(TellDataset(name, datasets));
  const std::string version = AnnotationOf(pod, kInjected).value_or("");
  story.injected = SidecarIn(pod) != nullptr;
  story.node = TellNode(story.machine, node_pods);
  if (story.injected) {
    story.why = version.empty() ? "it brought the container itself" : "by injector " + version;
    story.sidecar = TellSidecar(pod);
  } else {
    story.why = WhyNot(pod, story, injectors);
  }
  Advise(pod, story);
  return story;
}

std::string FormatPodStory(const PodStory& story) {
  std::string text = fmt::format("Pod {}\n", story.name);
  const auto line = [&text](std::string_view head, std::string_view what) {
    text += fmt::format("  {:<10}{}\n", head, what);
  };
  line("Injected", fmt::format("{}: {}", story.injected ? "yes" : "no", story.why));
  for (const DatasetStory& dataset : story.datasets)
    line("Dataset", fmt::format("{}, {}", dataset.name, dataset.verdict));
  line("Machine",
       story.machine.empty() ? story.node : fmt::format("{}: {}", story.machine, story.node));
  if (!story.sidecar.empty()) line("Sidecar", story.sidecar);
  if (story.reads) {
    const Reads& reads = *story.reads;
    const std::optional<double> ratio = reads.HitRatio();
    line("Reads", ratio ? fmt::format("{:.1f} % from the cache ({} from this machine's node, {} "
                                      "from others), {} from the store",
                                      *ratio * 100, reads.node, reads.peer, reads.store)
                        : "none yet");
    line("Waited", fmt::format("{:.1f} s", reads.wait_seconds));
  }
  for (std::size_t i = 0; i < story.advice.size(); ++i)
    text += (i == 0 ? "\nNext:\n  " : "  ") + story.advice[i] + "\n";
  return text;
}

std::string ToJson(const PodStory& story) {
  nlohmann::ordered_json json = {{"name", story.name},       {"injected", story.injected},
                                 {"why", story.why},         {"machine", story.machine},
                                 {"node", story.node},       {"sidecar", story.sidecar},
                                 {"datasets", Json::array()}};
  for (const DatasetStory& dataset : story.datasets)
    json["datasets"].push_back({{"name", dataset.name}, {"verdict", dataset.verdict}});
  if (story.reads) {
    json["reads"] = {{"node", story.reads->node},
                     {"peer", story.reads->peer},
                     {"store", story.reads->store},
                     {"waitSeconds", story.reads->wait_seconds}};
    if (const auto ratio = story.reads->HitRatio()) json["reads"]["hitRatio"] = *ratio;
  }
  json["advice"] = story.advice;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace optcache::cli
