#pragma once

// The reconcilers: gather what is known, decide, and have it done.

#include "base/clock.h"
#include "kube/controller.h"
#include "operator/manager/certificate_keeper.h"
#include "operator/manager/cluster_sync.h"
#include "operator/manager/dataset_directory.h"
#include "operator/manager/watches.h"
#include "operator/reconcile/apply.h"
#include "operator/reconcile/decision.h"

namespace optcache::manager {

// What the reconcilers share. Borrowed.
struct ReconcilerParts {
  const Clock& clock;
  Watches& watches;
  const DatasetDirectory& datasets;
  const ClusterSync& cluster;
  reconcile::DecisionRunner& runner;
};

class DatasetReconciler final : public kube::Reconciler {
 public:
  DatasetReconciler(ReconcilerParts parts, reconcile::ReconcileSettings settings)
      : parts_(parts), settings_(std::move(settings)) {}
  void Reconcile(const kube::ObjectKey& key, kube::ReconcileDone done) override;

 private:
  ReconcilerParts parts_;
  const reconcile::ReconcileSettings settings_;
};

class CachePlanReconciler final : public kube::Reconciler {
 public:
  explicit CachePlanReconciler(ReconcilerParts parts) : parts_(parts) {}
  void Reconcile(const kube::ObjectKey& key, kube::ReconcileDone done) override;

 private:
  ReconcilerParts parts_;
};

class WarmupReconciler final : public kube::Reconciler {
 public:
  WarmupReconciler(ReconcilerParts parts, reconcile::ReconcileSettings settings)
      : parts_(parts), settings_(std::move(settings)) {}
  void Reconcile(const kube::ObjectKey& key, kube::ReconcileDone done) override;

 private:
  ReconcilerParts parts_;
  const reconcile::ReconcileSettings settings_;
};

// Of the ConfigMap optcache-ca; its keys are names of namespaces.
class BundleReconciler final : public kube::Reconciler {
 public:
  BundleReconciler(ReconcilerParts parts, const CertificateKeeper& certificates,
                   std::string system_namespace)
      : parts_(parts), certificates_(certificates), system_(std::move(system_namespace)) {}
  void Reconcile(const kube::ObjectKey& key, kube::ReconcileDone done) override;

  // All namespaces that need one.
  std::vector<kube::ObjectKey> Needed() const;

 private:
  ReconcilerParts parts_;
  const CertificateKeeper& certificates_;
  const std::string system_;
};

// The namespaces that a Dataset concerns: its own, and those that it gives access to.
std::vector<kube::ObjectKey> NamespacesOf(const kube::Json& dataset);

}  // namespace optcache::manager
