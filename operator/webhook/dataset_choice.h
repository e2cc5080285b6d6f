#pragma once

// Which Datasets a pod uses, and by which objects of its own namespace.

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "operator/webhook/dataset_view.h"
#include "operator/webhook/inject.h"
#include "operator/webhook/json_access.h"
#include "operator/webhook/request.h"
#include "operator/webhook/sidecar_spec.h"

namespace optcache::webhook {

// Why a pod is not injected.
struct Refusal {
  Reason reason = Reason::kConflict;
  std::string message;
};

// In the order of the request; they point into `datasets`.
std::expected<std::vector<ChosenDataset>, Refusal> ChooseDatasets(const Json& pod,
                                                                  const InjectionRequest& request,
                                                                  std::string_view name_space,
                                                                  const DatasetView& datasets);

}  // namespace optcache::webhook
