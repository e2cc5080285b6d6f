#pragma once

// The ConfigMap optcache-ca: in every namespace that uses a Dataset, and in no other. Pure.

#include <string>
#include <vector>

#include "operator/reconcile/decision.h"

namespace optcache::reconcile {

struct BundleObserved {
  std::string ns;
  std::string bundle;              // CA certificates, PEM; empty: not known yet
  bool needed = false;             // a Dataset is here, or gives access to it
  std::vector<kube::Json> owners;  // owner references: it goes when they are gone
  kube::Json present;              // the ConfigMap as it is; null: there is none
};

Decision DecideBundle(const BundleObserved& observed);

}  // namespace optcache::reconcile
