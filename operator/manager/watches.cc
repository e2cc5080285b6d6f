// Says for each kind of object which are watched, which fields stay in the cache, and by what they
// are found.
//
// The caches hold thousands of machines and pods, and their size is the memory of the operator. So
// the transforms drop everything that is not read before an object is stored. What is asked of a
// training pod's containers is worked out then, and kept as two booleans. Each informer has a seed
// of its own for the jitter of its retries.

#include "operator/manager/watches.h"

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>

#include <fmt/format.h>

#include "base/random.h"
#include "operator/api/resources.h"
#include "operator/manager/last_word_watch.h"
#include "operator/pki/objects.h"
#include "operator/reconcile/cacheplan/revisions.h"
#include "operator/reconcile/dataset/index_job.h"
#include "operator/reconcile/dataset/observe.h"
#include "operator/reconcile/decision.h"
#include "operator/reconcile/warmup/decide.h"
#include "operator/reconcile/warmup/warm_job.h"
#include "operator/webhook/sidecar_spec.h"

namespace optcache::manager {
namespace {

using kube::InformerOptions;
using kube::Json;

// Of index Jobs, those of Warmups, and their pods.
const std::string& JobLabels() {
  static const std::string kLabels = fmt::format("{}={},{}", reconcile::kManagedByLabel,
                                                 reconcile::kManagedBy, reconcile::kComponentLabel);
  return kLabels;
}

bool HasEnded(const Json& pod) {
  const std::string phase = kube::TextAt(pod, "/status/phase");
  return phase == "Succeeded" || phase == "Failed";
}

bool AsksForGpus(const Json& pod) {
  for (const char* list : {"/spec/containers", "/spec/initContainers"}) {
    for (const Json& container : kube::Items(pod, list)) {
      const Json& limits = kube::Find(container, "/resources/limits");
      if (!limits.is_object()) continue;
      for (const auto& [resource, amount] : limits.items()) {
        if (IsGpu(resource) && amount != "0" && amount != 0) return true;
      }
    }
  }
  return false;
}

// What is one by its name after the slash: "nvidia.com/mig-1g.10gb", "google.com/tpu".
constexpr auto kOtherGpus = std::to_array<std::string_view>({"mig-", "tpu", "gaudi", "neuron"});

// Pages of machines and pods are big as text and ten times that when parsed.
constexpr std::uint32_t kPageOfBigObjects = 100;

InformerOptions NamedOne(const kube::Resource& resource, std::string ns, const std::string& name) {
  return {.resource = resource,
          .selection = {.ns = std::move(ns), .fields = "metadata.name=" + name}};
}

// With a seed of its own.
InformerOptions Seeded(std::uint64_t seed, InformerOptions options) {
  const std::string what =
      options.resource.Path("") + options.selection.fields + options.selection.labels;
  options.seed = Random::Mix(seed ^ std::hash<std::string>()(what));
  return options;
}

// Members of `object[list]` that are not among `kept` go.
void KeepMembers(Json& object, const char* list, std::initializer_list<std::string_view> kept) {
  const auto found = object.find(list);
  if (found == object.end() || !found->is_object()) return;
  for (auto member = found->begin(); member != found->end();) {
    const bool keeps = std::ranges::find(kept, member.key()) != kept.end();
    member = keeps ? std::next(member) : found->erase(member);
  }
}

// Labels and annotations stay.
void ReduceMetadata(Json& object) {
  KeepMembers(object, "metadata",
              {"name", "namespace", "uid", "resourceVersion", "creationTimestamp",
               "deletionTimestamp", "labels", "annotations", "ownerReferences"});
}

}  // namespace

bool IsGpu(std::string_view resource) {
  const std::size_t slash = resource.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view name = resource.substr(slash + 1);
  return resource.contains("gpu") || std::ranges::any_of(kOtherGpus, [&](std::string_view kind) {
           return name.starts_with(kind);
         });
}

void ReduceNode(Json& node) {
  Json gpus = Json::object();
  const Json& allocatable = kube::Find(node, "/status/allocatable");
  if (allocatable.is_object()) {
    for (const auto& [resource, amount] : allocatable.items()) {
      if (IsGpu(resource)) gpus[resource] = amount;
    }
  }
  kube::KeepOnly({"/spec/unschedulable", "/status/nodeInfo/kubeletVersion"})(node);
  ReduceMetadata(node);
  if (kube::Find(node, "/metadata").is_object()) node["metadata"].erase("annotations");
  if (!gpus.empty()) node["status"]["allocatable"] = std::move(gpus);
}

void ReduceTrainingPod(Json& pod) {
  const bool wants_gpus = AsksForGpus(pod) && !HasEnded(pod);
  const bool has_sidecar = webhook::FindSidecar(kube::Find(pod, "/spec")) != nullptr;
  Json last_word = LastWordOf(pod);
  kube::KeepOnly({"/status/phase"})(pod);
  ReduceMetadata(pod);
  KeepMembers(pod["metadata"], "labels", {kInjectLabel});
  KeepMembers(pod["metadata"], "annotations",
              {kDatasetAnnotation, kInjectedAnnotation, kOptionalAnnotation});
  pod[Json::json_pointer(kWantsGpus)] = wants_gpus;
  pod[Json::json_pointer(kHasSidecar)] = has_sidecar;
  if (!last_word.is_null()) pod[Json::json_pointer(kLastWord)] = std::move(last_word);
}

Watches::Watches(net::EventLoop& loop, const Clock& clock, kube::Client& client,
                 const std::string& name, const std::string& system_namespace, std::uint64_t seed)
    : datasets(loop, clock, client, Seeded(seed, {.resource = api::kDatasets})),
      plans(loop, clock, client,
            Seeded(seed, {.resource = api::kCachePlans,
                          .indexes = {{reconcile::kByDataset, reconcile::PlansByDataset()}}})),
      revisions(loop, clock, client,
                Seeded(seed, {.resource = kube::kControllerRevisions,
                              .selection = {.labels = reconcile::kPlanLabel},
                              .transform = kube::KeepOnly({"/data", "/revision"}),
                              .indexes = {{reconcile::kByPlan, reconcile::RevisionsByPlan()}}})),
      warmups(loop, clock, client,
              Seeded(seed, {.resource = api::kWarmups,
                            .indexes = {{reconcile::kByDataset, reconcile::PlansByDataset()}}})),
      jobs(loop, clock, client,
           Seeded(seed, {.resource = kube::kJobs,
                         .selection = {.labels = JobLabels()},
                         .transform = kube::KeepOnly(reconcile::JobFields()),
                         .indexes = {{reconcile::kByDataset, reconcile::JobsByDataset()},
                                     {reconcile::kByWarmup, reconcile::JobsByWarmup()}}})),
      job_pods(loop, clock, client,
               Seeded(seed, {.resource = kube::kPods,
                             .selection = {.labels = JobLabels()},
                             .transform = kube::KeepOnly(reconcile::IndexPodFields()),
                             .indexes = {{reconcile::kByJob, reconcile::PodsByJob()}}})),
      training_pods(
          loop, clock, client,
          Seeded(seed, {.resource = kube::kPods,
                        .selection = {.labels = fmt::format("{0},{0}!=false", kInjectLabel)},
                        .transform = ReduceTrainingPod,
                        .cycle = {.page_limit = kPageOfBigObjects}})),
      node_pods(loop, clock, client,
                Seeded(seed, {.resource = kube::kPods,
                              .selection = {.ns = system_namespace,
                                            .labels = "app.kubernetes.io/name=optcache,"
                                                      "app.kubernetes.io/component=node"},
                              .transform = kube::KeepOnly({"/spec/nodeName"}),
                              .cycle = {.page_limit = kPageOfBigObjects}})),
      nodes(loop, clock, client,
            Seeded(seed, {.resource = kube::kNodes,
                          .transform = ReduceNode,
                          .cycle = {.page_limit = kPageOfBigObjects}})),
      bundles(loop, clock, client,
              Seeded(seed, NamedOne(kube::kConfigMaps, "", authority::kBundleName))),
      secret(loop, clock, client,
             Seeded(seed, NamedOne(kube::kSecrets, system_namespace, name + "-pki"))),
      injectors(loop, clock, client,
                Seeded(seed, NamedOne(kube::kMutatingWebhookConfigurations, "",
                                      authority::kInjectorName))) {}

std::vector<kube::Informer*> Watches::All() {
  return {&datasets,      &plans,     &revisions, &warmups, &jobs,   &job_pods,
          &training_pods, &node_pods, &nodes,     &bundles, &secret, &injectors};
}

void Watches::Start() {
  for (kube::Informer* informer : All())
    informer->Start();
}

void Watches::Stop() {
  for (kube::Informer* informer : All())
    informer->Stop();
}

std::string Watches::Missing() {
  std::string missing;
  for (const kube::Informer* informer : All()) {
    if (!informer->synced())
      missing += (missing.empty() ? "" : ", ") + std::string(informer->resource().plural);
  }
  return missing;
}

void Watches::VisitCounters(const CounterVisitor& visitor) {
  for (const kube::Informer* informer : All())
    informer->VisitCounters(visitor);
}

}  // namespace optcache::manager
