// Builds what only the leader runs, in the order of dependencies, and takes it all down at once.
//
//   informers ─┬─► controllers ─► reconcilers ─► DecisionRunner ─► FencedClient ─► API server
//              └─► ClusterSync ─┬─► OnPlaced: Dataset, plans and warm-ups are reconciled again
//                               └─► ControlService (the coordinator) ◄─ ControlGate ◄─ nodes
//
// Every write goes through the FencedClient, which asks the permit first: a leader whose Lease is
// over writes nothing. The gate opens once ClusterSync has begun, so nodes never meet a coordinator
// that places Datasets nowhere. Informers outlive a leadership and keep its callbacks; these look
// into `self_`, which is null after the end. The functions before the class say which objects a
// change concerns, before it and after it.

#include "operator/manager/leadership.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "operator/manager/condition_metrics.h"
#include "operator/manager/plan_metrics.h"
#include "operator/manager/warmup_metrics.h"
#include "operator/reconcile/cacheplan/revisions.h"
#include "operator/reconcile/cluster/saved_totals.h"
#include "operator/reconcile/dataset/index_job.h"
#include "operator/reconcile/dataset/observe.h"
#include "operator/reconcile/warmup/warm_job.h"

namespace optcache::manager {
namespace {

control::ControlOptions ServiceOptions(std::uint64_t term) {
  return {.coordinator = {.term = static_cast<std::uint32_t>(term), .successor = true},
          .nodes_prove_names = true};
}

reconcile::ReconcileSettings SettingsOf(const OperatorOptions& options) {
  return {.name = options.name,
          .system_namespace = options.system_namespace,
          .sidecar_image = options.sidecar_image,
          .image_pull_policy = options.image_pull_policy,
          .image_pull_secrets = options.image_pull_secrets,
          .index_pod = options.index_pod,
          .source_variables = ProxyVariables(options.proxy)};
}

// Before and after a change, each key once.
template <typename F>
std::vector<kube::ObjectKey> OfBoth(const kube::ObjectChange& change, F&& keys_of) {
  std::vector<kube::ObjectKey> keys;
  for (const auto& object : {change.before, change.after}) {
    if (object == nullptr) continue;
    for (kube::ObjectKey& key : keys_of(*object)) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(std::move(key));
    }
  }
  return keys;
}

// Of training pods it only counts which Datasets are read by pods with GPUs that have not ended.
bool MattersToPlacement(const kube::ObjectChange& pod) {
  const auto wants_gpus = [](const kube::ObjectCache::Entry& object) {
    return object != nullptr && kube::BoolAt(*object, kWantsGpus);
  };
  return wants_gpus(pod.before) != wants_gpus(pod.after);
}

std::vector<kube::ObjectKey> DatasetOfPlan(const kube::Json& plan) {
  return {{.ns = kube::KeyOf(plan).ns, .name = kube::TextAt(plan, "/spec/dataset")}};
}

std::vector<kube::ObjectKey> PlanOfRevision(const kube::Json& revision) {
  const auto plan = kube::LabelOf(revision, reconcile::kPlanLabel);
  if (!plan) return {};
  return {{.ns = kube::KeyOf(revision).ns, .name = *plan}};
}

std::vector<kube::ObjectKey> WarmupOfLabel(const kube::Json& object) {
  const auto name = kube::LabelOf(object, reconcile::kWarmupLabel);
  if (!name) return {};
  return {{.ns = kube::KeyOf(object).ns, .name = *name}};
}

std::vector<kube::ObjectKey> KeysOf(const std::vector<kube::ObjectCache::Entry>& objects) {
  std::vector<kube::ObjectKey> keys;
  keys.reserve(objects.size());
  for (const auto& object : objects)
    keys.push_back(kube::KeyOf(*object));
  return keys;
}

std::vector<kube::ObjectKey> DatasetOfLabel(const kube::Json& object) {
  const auto name = kube::LabelOf(object, reconcile::kDatasetLabel);
  if (!name) return {};
  return {{.ns = kube::KeyOf(object).ns, .name = *name}};
}

}  // namespace

Leadership::Leadership(Parts parts, const OperatorOptions& options, std::uint64_t term)
    : parts_(std::move(parts)),
      client_(parts_.client, parts_.permit),
      applier_(client_, {.field_manager = kFieldManager}),
      events_(parts_.loop, parts_.clock, client_,
              {.controller = "optcache.io/operator", .instance = options.pod_name}),
      runner_(applier_, events_,
              [this](const kube::Resource& resource, const kube::ObjectKey& key) {
                return Present(resource, key);
              }),
      service_(parts_.clock, ServiceOptions(term)),
      cluster_(
          {.loop = parts_.loop,
           .clock = parts_.clock,
           .watches = parts_.watches,
           .datasets = parts_.datasets,
           .service = service_,
           .leads = [this] { return parts_.permit().has_value(); }},
          [this](const kube::ObjectKey& dataset) { OnPlaced(dataset); },
          [this] { parts_.gate.Lead(service_); }),
      dataset_reconciler_({parts_.clock, parts_.watches, parts_.datasets, cluster_, runner_},
                          SettingsOf(options)),
      plan_reconciler_({parts_.clock, parts_.watches, parts_.datasets, cluster_, runner_}),
      warmup_reconciler_({parts_.clock, parts_.watches, parts_.datasets, cluster_, runner_},
                         SettingsOf(options)),
      bundle_reconciler_({parts_.clock, parts_.watches, parts_.datasets, cluster_, runner_},
                         parts_.certificates, options.system_namespace),
      dataset_controller_(parts_.loop, parts_.clock, {.name = "dataset"}, dataset_reconciler_),
      plan_controller_(parts_.loop, parts_.clock, {.name = "cacheplan"}, plan_reconciler_),
      warmup_controller_(parts_.loop, parts_.clock, {.name = "warmup"}, warmup_reconciler_),
      bundle_controller_(parts_.loop, parts_.clock, {.name = "ca-bundle"}, bundle_reconciler_),
      self_(std::make_shared<Leadership*>(this)) {
  WatchDatasets();
  WatchPlans();
  WatchWarmups();
  WatchBundles();
  for (kube::Informer* informer : {&parts_.watches.plans, &parts_.watches.revisions,
                                   &parts_.watches.node_pods, &parts_.watches.nodes})
    TouchOnChange(*informer, [](const kube::ObjectChange&) { return true; });
  TouchOnChange(parts_.watches.datasets, [](const kube::ObjectChange& change) {
    return change.before == nullptr || change.after == nullptr ||
           !reconcile::SameButForSaved(*change.before, *change.after);
  });
  TouchOnChange(parts_.watches.training_pods, MattersToPlacement);
  TouchOnChange(parts_.watches.jobs, [](const kube::ObjectChange& change) {
    return !OfBoth(change, WarmupOfLabel).empty();
  });
  parts_.certificates.Lead(client_, events_);
  parts_.injection.Lead(events_);
  parts_.last_words.Lead(events_);
  Log(LogLevel::kInfo, "leading", {{"term", term}});
}

Leadership::~Leadership() {
  *self_ = nullptr;
  parts_.certificates.OnBundle(nullptr);
  parts_.certificates.Follow();
  parts_.injection.Follow();
  parts_.last_words.Follow();
  parts_.gate.Follow("");
}

void Leadership::WatchDatasets() {
  dataset_controller_.For(parts_.watches.datasets);
  dataset_controller_.Watch(parts_.watches.plans, [](const kube::ObjectChange& change) {
    return OfBoth(change, DatasetOfPlan);
  });
  for (kube::Informer* informer : {&parts_.watches.jobs, &parts_.watches.job_pods}) {
    dataset_controller_.Watch(
        *informer, [](const kube::ObjectChange& change) { return OfBoth(change, DatasetOfLabel); });
  }
  dataset_controller_.Start();
}

// A change of a Dataset, or of another plan for it, may change which plan counts.
void Leadership::WatchPlans() {
  plan_controller_.For(parts_.watches.plans);
  const auto plans_of = [this](const kube::ObjectKey& dataset) {
    std::vector<kube::ObjectKey> keys;
    for (const auto& plan :
         parts_.watches.plans.cache().Lookup(reconcile::kByDataset, dataset.ToString()))
      keys.push_back(kube::KeyOf(*plan));
    return keys;
  };
  plan_controller_.Watch(parts_.watches.datasets, [plans_of](const kube::ObjectChange& change) {
    return plans_of(change.key);
  });
  plan_controller_.Watch(parts_.watches.plans, [plans_of](const kube::ObjectChange& change) {
    return OfBoth(change,
                  [&](const kube::Json& plan) { return plans_of(DatasetOfPlan(plan).front()); });
  });
  plan_controller_.Watch(parts_.watches.revisions, [](const kube::ObjectChange& change) {
    return OfBoth(change, PlanOfRevision);
  });
  plan_controller_.Start();
}

// A Dataset that is indexed, or another plan for it, may be what a warm-up waits for.
void Leadership::WatchWarmups() {
  warmup_controller_.For(parts_.watches.warmups);
  const auto warmups_of = [this](const kube::ObjectKey& dataset) {
    return KeysOf(parts_.watches.warmups.cache().Lookup(reconcile::kByDataset, dataset.ToString()));
  };
  warmup_controller_.Watch(parts_.watches.datasets, [warmups_of](const kube::ObjectChange& change) {
    return warmups_of(change.key);
  });
  for (kube::Informer* informer : {&parts_.watches.jobs, &parts_.watches.job_pods}) {
    warmup_controller_.Watch(
        *informer, [](const kube::ObjectChange& change) { return OfBoth(change, WarmupOfLabel); });
  }
  warmup_controller_.Start();
}

void Leadership::WatchBundles() {
  bundle_controller_.Watch(parts_.watches.datasets, [](const kube::ObjectChange& change) {
    return OfBoth(change, NamespacesOf);
  });
  bundle_controller_.Watch(parts_.watches.bundles, [](const kube::ObjectChange& change) {
    return std::vector<kube::ObjectKey>{{.ns = "", .name = change.key.ns}};
  });
  // A namespace with `access` may come after the Dataset that gives it.
  bundle_controller_.Watch(parts_.watches.training_pods, [](const kube::ObjectChange& change) {
    std::vector<kube::ObjectKey> keys;
    if (change.before == nullptr) keys.push_back({.ns = "", .name = change.key.ns});
    return keys;
  });
  // Owns that of our own namespace.
  bundle_controller_.Watch(parts_.watches.secret, [](const kube::ObjectChange& change) {
    return std::vector<kube::ObjectKey>{{.ns = "", .name = change.key.ns}};
  });
  parts_.certificates.OnBundle([this] {
    for (const kube::ObjectKey& key : bundle_reconciler_.Needed())
      bundle_controller_.Enqueue(key);
  });
  for (const kube::ObjectKey& key : bundle_reconciler_.Needed())
    bundle_controller_.Enqueue(key);
  bundle_controller_.Start();
}

void Leadership::TouchOnChange(kube::Informer& informer,
                               std::function<bool(const kube::ObjectChange&)> matters) {
  informer.OnChange([self = self_, matters = std::move(matters)](const kube::ObjectChange& change) {
    if (*self != nullptr && matters(change)) (*self)->cluster_.Touch();
  });
}

void Leadership::OnPlaced(const kube::ObjectKey& dataset) {
  dataset_controller_.Enqueue(dataset);
  for (const auto& plan :
       parts_.watches.plans.cache().Lookup(reconcile::kByDataset, dataset.ToString()))
    plan_controller_.Enqueue(kube::KeyOf(*plan));
  for (const kube::ObjectKey& warmup :
       KeysOf(parts_.watches.warmups.cache().Lookup(reconcile::kByDataset, dataset.ToString())))
    warmup_controller_.Enqueue(warmup);
}

kube::ObjectCache::Entry Leadership::Present(const kube::Resource& resource,
                                             const kube::ObjectKey& key) {
  for (const kube::Informer* informer :
       {&parts_.watches.datasets, &parts_.watches.plans, &parts_.watches.revisions,
        &parts_.watches.warmups, &parts_.watches.jobs, &parts_.watches.bundles}) {
    if (informer->resource() == resource) return informer->cache().Find(key);
  }
  return nullptr;
}

void Leadership::VisitCounters(const CounterVisitor& visitor) const {
  cluster_.VisitCounters(visitor);
  VisitConditions(parts_.watches.datasets.cache(), visitor);
  VisitPlans(parts_.watches.datasets.cache(), parts_.watches.plans.cache(), cluster_, visitor);
  VisitWarmups(parts_.watches.warmups.cache(), visitor);
  events_.VisitCounters(visitor);
  dataset_controller_.VisitCounters(visitor);
  plan_controller_.VisitCounters(visitor);
  warmup_controller_.VisitCounters(visitor);
  bundle_controller_.VisitCounters(visitor);
}

}  // namespace optcache::manager
