#include "operator/reconcile/bundle.h"

#include "operator/pki/objects.h"

namespace optcache::reconcile {

Decision DecideBundle(const BundleObserved& observed) {
  Decision decision;
  if (observed.needed) {
    if (observed.bundle.empty()) return decision;
    kube::Json object = authority::BuildBundle(observed.ns, observed.bundle);
    if (!observed.owners.empty()) object["metadata"]["ownerReferences"] = observed.owners;
    decision.applies.push_back({.resource = kube::kConfigMaps, .object = std::move(object)});
    return decision;
  }
  const bool ours = kube::LabelOf(observed.present, kManagedByLabel) == kManagedBy;
  if (observed.present.is_null() || !ours || kube::IsBeingDeleted(observed.present))
    return decision;
  decision.deletes.push_back({.resource = kube::kConfigMaps,
                              .key = {.ns = observed.ns, .name = authority::kBundleName},
                              .uid = kube::UidOf(observed.present)});
  return decision;
}

}  // namespace optcache::reconcile
