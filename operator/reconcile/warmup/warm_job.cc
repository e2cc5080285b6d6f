// Builds the Job of a Warmup, and says which machines such Jobs fill.
//
// It is an Indexed Job with one pod for each machine. Affinity puts a pod on a machine of the list
// and no two on one; the pod learns from the downward API where it is, and takes the part of that
// machine (`--part`, `--at`). All parts stand in the arguments of each pod, because the choice is
// computed from all of them. The machines are kept in an annotation, by which placement counts them
// as holders before the first byte is there.

#include "operator/reconcile/warmup/warm_job.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/utf8.h"
#include "dataset/digest.h"
#include "operator/api/resources.h"
#include "operator/reconcile/dataset/index_job.h"
#include "operator/reconcile/dataset/observe.h"
#include "operator/reconcile/dataset/source_pod.h"

namespace optcache::reconcile {
namespace {

using kube::Json;

constexpr std::size_t kWarmHashDigits = 10;
constexpr std::size_t kWarmNameDigits = 6;
// The names of an Indexed Job's pods, with "-999" behind it, must be labels of DNS.
constexpr std::size_t kMaxWarmJobName = 59;
constexpr std::size_t kMaxWarmMessage = 4096;
constexpr std::size_t kMaxWarmSentence = 1024;
constexpr double kNodesHaveReportedWithinSeconds = 10;
constexpr int kWarmRetries = 3;  // for each pod, and shared by all
// Samples on their way, twice over; the program; and what is kept of each sample.
constexpr ByteCount kInFlight = 128_MiB;
constexpr ByteCount kProgram = 64_MiB;
constexpr ByteCount kBytesPerSample = 100;

std::string WarmHashOf(std::string_view text) {
  return dataset::ToHex(dataset::Sha256Of(AsBytes(text)));
}

// Of each pod: its part of the bandwidth, and no more than the Dataset allows any process. 0: no
// limit.
ByteCount BytesPerSecond(const api::WarmupSpec& spec, const api::DatasetSpec& source,
                         std::size_t pods) {
  const ByteCount each = spec.bandwidth > 0 ? std::max<ByteCount>(1, spec.bandwidth / pods) : 0;
  const ByteCount allowed = source.limits.bytes_per_second;
  return each > 0 && allowed > 0 ? std::min(each, allowed) : std::max(each, allowed);
}

Json WarmArguments(const api::WarmupSpec& spec, const kube::ObjectKey& dataset,
                   const api::DatasetSpec& source, const WarmTarget& target,
                   const ReconcileSettings& settings) {
  Json args = {"warm"};
  const auto add = [&args](std::string_view flag, const std::string& value) {
    args.push_back(flag);
    args.push_back(LiteralArgument(value));
  };
  args.push_back("--name");
  args.push_back("$(POD_NAMESPACE)/$(POD_NAME)");
  add("--node", fmt::format("{}-node.{}.svc:4100", settings.name, settings.system_namespace));
  const std::string name = dataset.ToString();
  add("--dataset", fmt::format("{}=={}", name, SourceAddress(source)));
  if (const std::string keys = KeysFolder(source); !keys.empty())
    add("--keys", fmt::format("{}={}", name, keys));
  AddNodeArguments(settings, args);
  for (const api::NodeBytes& node : target.nodes)
    add("--part", fmt::format("{}={}", node.name, node.bytes));
  args.push_back("--at");
  args.push_back("$(NODE_NAME)");
  if (const ByteCount rate = BytesPerSecond(spec, source, target.nodes.size()); rate > 0)
    add("--bytes-per-second", fmt::format("{}={}", name, rate));
  if (source.limits.requests_per_second > 0) {
    add("--requests-per-second", fmt::format("{}={}", name, source.limits.requests_per_second));
  }
  if (source.patience_seconds > 0)
    add("--patience", fmt::format("{}={}s", name, source.patience_seconds));
  if (!target.order.empty()) add("--order", target.order);
  add("--termination-file", "/dev/termination-log");
  return args;
}

Json WarmResources(const WarmTarget& target) {
  const ByteCount bytes = std::max(kInFlight, 2 * target.largest_sample) + kProgram +
                          2 * target.samples * kBytesPerSample;
  const std::string memory = fmt::format("{}Mi", (bytes + 1_MiB - 1) / 1_MiB);
  return {{"requests", {{"cpu", "100m"}, {"memory", memory}, {"ephemeral-storage", "64Mi"}}},
          {"limits", {{"cpu", "2"}, {"memory", memory}, {"ephemeral-storage", "256Mi"}}}};
}

// One of these machines, and none that has another pod of this Warmup.
Json WarmAffinity(const std::string& warmup, const WarmTarget& target) {
  Json terms = Json::array();
  for (const api::NodeBytes& node : target.nodes) {
    terms.push_back({{"matchFields", Json::array({{{"key", "metadata.name"},
                                                   {"operator", "In"},
                                                   {"values", Json::array({node.name})}}})}});
  }
  const Json others = {{"labelSelector", {{"matchLabels", {{kWarmupLabel, warmup}}}}},
                       {"topologyKey", "kubernetes.io/hostname"}};
  return {{"nodeAffinity",
           {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", terms}}}}},
          {"podAntiAffinity",
           {{"requiredDuringSchedulingIgnoredDuringExecution", Json::array({others})}}}};
}

std::string NamesOf(const WarmTarget& target) {
  std::string names;
  for (const api::NodeBytes& node : target.nodes)
    names += (names.empty() ? "" : ",") + node.name;
  return names;
}

Json FromPodField(std::string_view name, std::string_view path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
}

}  // namespace

std::string WarmJobName(std::string_view warmup, const api::WarmupSpec& spec,
                        std::string_view manifest_digest) {
  const std::string hash =
      WarmHashOf(fmt::format("{}\n{}\n{}", manifest_digest, spec.dataset, spec.bandwidth))
          .substr(0, kWarmHashDigits);
  const std::string ending = fmt::format("-warm-{}", hash);
  const std::size_t room = kMaxWarmJobName - ending.size();
  if (warmup.size() <= room && !warmup.contains('.')) return std::string(warmup) + ending;
  // Two names that begin alike, or differ in their dots alone, must not share a Job.
  std::string begin(warmup.substr(0, room - kWarmNameDigits - 1));
  std::ranges::replace(begin, '.', '-');
  return fmt::format("{}-{}{}", begin, WarmHashOf(warmup).substr(0, kWarmNameDigits), ending);
}

Json BuildWarmJob(const Json& warmup, const api::WarmupSpec& spec, const api::DatasetSpec& dataset,
                  const WarmTarget& target, const ReconcileSettings& settings) {
  const kube::ObjectKey key = kube::KeyOf(warmup);
  const Json labels = {{kManagedByLabel, kManagedBy},
                       {"app.kubernetes.io/name", "optcache"},
                       {kComponentLabel, kWarmComponent},
                       {kWarmupLabel, key.name}};
  const kube::ObjectKey of{.ns = key.ns, .name = spec.dataset};
  Json pod = SourcePod("warmup", WarmArguments(spec, of, dataset, target, settings),
                       WarmResources(target), dataset, settings);
  pod["containers"][0]["env"] = Json::array({FromPodField("POD_NAME", "metadata.name"),
                                             FromPodField("POD_NAMESPACE", "metadata.namespace"),
                                             FromPodField("NODE_NAME", "spec.nodeName")});
  pod["affinity"] = WarmAffinity(key.name, target);
  // Where a node of ours runs, so may this, whatever else is kept away from there.
  pod["tolerations"] = Json::array({{{"operator", "Exists"}, {"effect", "NoSchedule"}}});
  Json job = kube::MakeObject(
      kube::kJobs, {.ns = key.ns, .name = WarmJobName(key.name, spec, target.manifest_digest)});
  job["metadata"]["labels"] = labels;
  job["metadata"]["annotations"] = {{kWarmsAnnotation, spec.dataset},
                                    {kWarmNodesAnnotation, NamesOf(target)}};
  job["metadata"]["ownerReferences"] = Json::array({kube::OwnerReference(api::kWarmups, warmup)});
  const std::size_t pods = target.nodes.size();
  job["spec"] = {{"completionMode", "Indexed"},
                 {"completions", pods},
                 {"parallelism", pods},
                 {"backoffLimit", kWarmRetries * pods},
                 {"ttlSecondsAfterFinished", kJobKeptSeconds},
                 {"template",
                  {{"metadata", {{"labels", SourcePodLabels(labels)}}}, {"spec", std::move(pod)}}}};
  return job;
}

std::set<std::string> MachinesOf(const Json& warm_job) {
  const std::string nodes = kube::AnnotationOf(warm_job, kWarmNodesAnnotation).value_or("");
  std::set<std::string> machines;
  for (std::size_t begin = 0; begin < nodes.size();) {
    const std::size_t comma = std::min(nodes.find(',', begin), nodes.size());
    if (comma > begin) machines.insert(nodes.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return machines;
}

std::map<std::string, std::set<std::string>> MachinesBeingWarmed(const kube::ObjectCache& jobs,
                                                                 const kube::ObjectCache& pods,
                                                                 double now) {
  std::map<std::string, std::set<std::string>> machines;
  for (const auto& job : jobs.List()) {
    const auto dataset = kube::AnnotationOf(*job, kWarmsAnnotation);
    if (!dataset || !kube::LabelOf(*job, kWarmupLabel) || kube::IsBeingDeleted(*job)) continue;
    const IndexJob seen = ObserveJob(*job, pods);
    const bool ended = seen.state != JobState::kRunning;
    if (ended && now - seen.finished_at > kNodesHaveReportedWithinSeconds) continue;
    machines[kube::ObjectKey{.ns = kube::KeyOf(*job).ns, .name = *dataset}.ToString()].merge(
        MachinesOf(*job));
  }
  return machines;
}

std::optional<WarmResult> ParseWarmResult(std::string_view termination_message) {
  if (termination_message.size() > kMaxWarmMessage) return std::nullopt;
  const Json json = Json::parse(termination_message, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  WarmResult result{.message = CutText(kube::TextAt(json, "/message"), kMaxWarmSentence)};
  const auto count = [&json](std::string_view pointer) { return kube::CountAt(json, pointer); };
  if (result.message.empty() && !kube::NumberAt(json, "/totalSamples")) return std::nullopt;
  result.at = kube::TextAt(json, "/at");
  result.samples = count("/held") + count("/read");
  result.bytes = count("/heldBytes") + count("/readBytes");
  result.no_room = count("/noRoom");
  result.failed = count("/failed");
  result.first_failure = CutText(kube::TextAt(json, "/firstFailure"), kMaxWarmSentence);
  return result;
}

}  // namespace optcache::reconcile
