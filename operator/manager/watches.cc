#include "operator/manager/watches.h"

#include <fmt/format.h>

#include "operator/api/cache_plan_types.h"
#include "operator/api/dataset_types.h"
#include "operator/pki/objects.h"
#include "operator/reconcile/dataset/index_job.h"
#include "operator/reconcile/dataset/observe.h"
#include "operator/reconcile/decision.h"

namespace optcache::manager {
namespace {

using kube::InformerOptions;
using kube::Json;

const std::string& IndexLabels() {
  static const std::string kLabels =
      fmt::format("{}={},{}={}", reconcile::kManagedByLabel, reconcile::kManagedBy,
                  reconcile::kComponentLabel, reconcile::kIndexComponent);
  return kLabels;
}

bool AsksForGpus(const Json& pod) {
  for (const char* list : {"/spec/containers", "/spec/initContainers"}) {
    for (const Json& container : kube::Items(pod, list)) {
      const Json& limits = kube::Find(container, "/resources/limits");
      if (!limits.is_object()) continue;
      for (const auto& [resource, amount] : limits.items()) {
        if (resource.ends_with("/gpu") && amount != "0" && amount != 0) return true;
      }
    }
  }
  return false;
}

void ReduceTrainingPod(Json& pod) {
  const bool wants_gpus = AsksForGpus(pod);
  kube::KeepOnly({"/status/phase"})(pod);
  pod[Json::json_pointer(kWantsGpus)] = wants_gpus;
}

InformerOptions NamedOne(const kube::Resource& resource, std::string ns, const std::string& name) {
  return {.resource = resource,
          .selection = {.ns = std::move(ns), .fields = "metadata.name=" + name}};
}

}  // namespace

Watches::Watches(net::EventLoop& loop, const Clock& clock, kube::Client& client,
                 const std::string& name, const std::string& system_namespace)
    : datasets(loop, clock, client, {.resource = api::kDatasets}),
      plans(loop, clock, client,
            {.resource = api::kCachePlans,
             .indexes = {{reconcile::kByDataset, reconcile::PlansByDataset()}}}),
      jobs(loop, clock, client,
           {.resource = kube::kJobs,
            .selection = {.labels = IndexLabels()},
            .transform = kube::KeepOnly(reconcile::JobFields()),
            .indexes = {{reconcile::kByDataset, reconcile::JobsByDataset()}}}),
      job_pods(loop, clock, client,
               {.resource = kube::kPods,
                .selection = {.labels = IndexLabels()},
                .transform = kube::KeepOnly(reconcile::IndexPodFields()),
                .indexes = {{reconcile::kByJob, reconcile::PodsByJob()}}}),
      training_pods(loop, clock, client,
                    {.resource = kube::kPods,
                     .selection = {.labels = fmt::format("{0},{0}!=false", kInjectLabel)},
                     .transform = ReduceTrainingPod}),
      node_pods(loop, clock, client,
                {.resource = kube::kPods,
                 .selection = {.ns = system_namespace,
                               .labels = "app.kubernetes.io/name=optcache,"
                                         "app.kubernetes.io/component=node"},
                 .transform = kube::KeepOnly({"/spec/nodeName"})}),
      nodes(loop, clock, client,
            {.resource = kube::kNodes,
             .transform = kube::KeepOnly({"/spec/unschedulable", "/status/allocatable",
                                          "/status/nodeInfo/kubeletVersion"})}),
      bundles(loop, clock, client, NamedOne(kube::kConfigMaps, "", authority::kBundleName)),
      secret(loop, clock, client, NamedOne(kube::kSecrets, system_namespace, name + "-pki")),
      injectors(loop, clock, client,
                NamedOne(kube::kMutatingWebhookConfigurations, "", name + "-injector")) {}

std::vector<kube::Informer*> Watches::All() {
  return {&datasets,  &plans, &jobs,    &job_pods, &training_pods,
          &node_pods, &nodes, &bundles, &secret,   &injectors};
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
