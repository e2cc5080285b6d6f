#include "operator/manager/reconcilers.h"

#include <algorithm>
#include <set>
#include <utility>

#include "operator/api/resources.h"
#include "operator/pki/objects.h"
#include "operator/reconcile/bundle.h"
#include "operator/reconcile/cacheplan/decide.h"
#include "operator/reconcile/dataset/decide.h"
#include "operator/reconcile/dataset/observe.h"
#include "operator/reconcile/dataset/plan_choice.h"
#include "operator/reconcile/warmup/decide.h"

namespace optcache::manager {

void DatasetReconciler::Reconcile(const kube::ObjectKey& key, kube::ReconcileDone done) {
  const auto dataset = parts_.watches.datasets.cache().Find(key);
  if (dataset == nullptr) return done({.status = OkStatus()});
  reconcile::Observed observed =
      reconcile::ObserveDataset(*dataset,
                                {.plans = parts_.watches.plans.cache(),
                                 .jobs = parts_.watches.jobs.cache(),
                                 .pods = parts_.watches.job_pods.cache()},
                                parts_.clock.UnixSeconds());
  const std::string name = key.ToString();
  observed.placed = parts_.cluster.PlacedOf(name);
  observed.cache = parts_.cluster.ViewOf(name);
  observed.saved = parts_.cluster.SavedOf(name);
  observed.too_many = parts_.cluster.IsTooMany(name);
  parts_.runner.Run(reconcile::DecideDataset(observed, settings_),
                    kube::ReferenceTo(api::kDatasets, *dataset), std::move(done));
}

void CachePlanReconciler::Reconcile(const kube::ObjectKey& key, kube::ReconcileDone done) {
  const auto plan = parts_.watches.plans.cache().Find(key);
  if (plan == nullptr) return done({.status = OkStatus()});
  const kube::ObjectKey dataset{.ns = key.ns, .name = kube::TextAt(*plan, "/spec/dataset")};
  const auto known = parts_.watches.datasets.cache().Find(dataset);
  reconcile::PlanObserved observed{
      .plan = *plan,
      .dataset_exists = known != nullptr,
      .revisions = reconcile::RevisionsOf(key, parts_.watches.revisions.cache()),
      .view = parts_.cluster.PlanViewOf(dataset.ToString()),
      .now = parts_.clock.UnixSeconds()};
  if (known != nullptr) {
    const auto plans =
        reconcile::PlansOf(dataset, kube::UidOf(*known), parts_.watches.plans.cache());
    const reconcile::PlanChoice choice = reconcile::ChoosePlan(plans);
    if (choice.chosen != nullptr) observed.followed = choice.chosen->name;
  }
  parts_.runner.Run(reconcile::DecideCachePlan(observed),
                    kube::ReferenceTo(api::kCachePlans, *plan), std::move(done));
}

void WarmupReconciler::Reconcile(const kube::ObjectKey& key, kube::ReconcileDone done) {
  const auto warmup = parts_.watches.warmups.cache().Find(key);
  if (warmup == nullptr) return done({.status = OkStatus()});
  reconcile::WarmupObserved observed =
      reconcile::ObserveWarmup(*warmup,
                               {.datasets = parts_.watches.datasets.cache(),
                                .plans = parts_.watches.plans.cache(),
                                .jobs = parts_.watches.jobs.cache(),
                                .pods = parts_.watches.job_pods.cache()},
                               parts_.clock.UnixSeconds());
  const std::string dataset =
      kube::ObjectKey{.ns = key.ns, .name = kube::TextAt(*warmup, "/spec/dataset")}.ToString();
  observed.placed = parts_.cluster.PlacedOf(dataset);
  observed.placed_for = parts_.cluster.PlacedFor(dataset);
  observed.cache = parts_.cluster.ViewOf(dataset);
  parts_.runner.Run(reconcile::DecideWarmup(observed, settings_),
                    kube::ReferenceTo(api::kWarmups, *warmup), std::move(done));
}

void BundleReconciler::Reconcile(const kube::ObjectKey& key, kube::ReconcileDone done) {
  const std::string& ns = key.name;
  reconcile::BundleObserved observed{
      .ns = ns, .bundle = certificates_.bundle(), .needed = ns == system_};
  for (const auto& [dataset, known] : parts_.datasets.all()) {
    const bool access = std::ranges::find(known.spec.access, ns) != known.spec.access.end();
    observed.needed = observed.needed || access || dataset.ns == ns;
    if (dataset.ns != ns) continue;
    observed.owners.push_back({{"apiVersion", api::kDatasets.ApiVersion()},
                               {"kind", api::kDatasets.kind},
                               {"name", dataset.name},
                               {"uid", known.uid}});
  }
  if (ns == system_) {
    for (const auto& secret : parts_.watches.secret.cache().List()) {
      observed.owners.push_back({{"apiVersion", "v1"},
                                 {"kind", "Secret"},
                                 {"name", kube::KeyOf(*secret).name},
                                 {"uid", kube::UidOf(*secret)}});
    }
  }
  const auto present =
      parts_.watches.bundles.cache().Find({.ns = ns, .name = authority::kBundleName});
  if (present != nullptr) observed.present = *present;
  const kube::ObjectReference regarding{.api_version = "v1",
                                        .kind = "ConfigMap",
                                        .ns = ns,
                                        .name = authority::kBundleName,
                                        .uid = kube::UidOf(observed.present)};
  parts_.runner.Run(reconcile::DecideBundle(observed), regarding, std::move(done));
}

std::vector<kube::ObjectKey> BundleReconciler::Needed() const {
  std::set<std::string> namespaces = {system_};
  for (const auto& [dataset, known] : parts_.datasets.all()) {
    namespaces.insert(dataset.ns);
    namespaces.insert(known.spec.access.begin(), known.spec.access.end());
  }
  std::vector<kube::ObjectKey> keys;
  for (const std::string& ns : namespaces)
    keys.push_back({.ns = "", .name = ns});
  return keys;
}

std::vector<kube::ObjectKey> NamespacesOf(const kube::Json& dataset) {
  std::vector<kube::ObjectKey> keys = {{.ns = "", .name = kube::KeyOf(dataset).ns}};
  for (const kube::Json& access : kube::Items(dataset, "/spec/access")) {
    if (std::string ns = kube::TextAt(access, "/namespace"); !ns.empty())
      keys.push_back({.ns = "", .name = std::move(ns)});
  }
  return keys;
}

}  // namespace optcache::manager
