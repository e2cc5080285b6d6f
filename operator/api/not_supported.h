#pragma once

// What the CRDs admit and this version does not do yet; docs/user/crds.md has the list.

#include <string>
#include <vector>

#include "kube/object.h"

namespace optcache::api {

// The fields of a Dataset or CachePlan that ask for it: "spec.rollout.paused". The default of a
// field asks for nothing, as the API server fills it in.
std::vector<std::string> NotSupported(const kube::Json& object);

}  // namespace optcache::api
