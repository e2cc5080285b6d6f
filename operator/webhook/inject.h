#pragma once

// Whether a pod gets a sidecar, and what of the pod changes for it. Pure: same pod, same Datasets,
// same settings, same answer. All or nothing: a pod that cannot be injected as a whole is refused,
// or let through as it came, never half of it.

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "operator/webhook/dataset_view.h"
#include "operator/webhook/settings.h"

namespace optcache::webhook {

enum class Outcome { kInjected, kSkipped, kDenied };

// Why, as it stands in metrics, in the API server's audit log and in docs/user/troubleshooting.md.
enum class Reason {
  kInjected,           // all of it
  kCompleted,          // a container that came after our first call got socket and environment
  kUnchanged,          // everything is there already
  kNotSelected,        // neither label nor annotation
  kSwitchedOff,        // label optcache.io/inject: "false"
  kBroughtItsOwn,      // a container optcache-sidecar that we did not make
  kNotCreate,          // not the creation of a pod
  kInvalidAnnotation,  // an annotation or the label cannot be understood
  kUnknownDataset,     // there is none of that name
  kNotPermitted,       // the Dataset does not allow this namespace
  kUnreadableSource,   // a Dataset or source that this version cannot read, or a claim missing
  kConflict,           // a volume, mount or port of the pod stands where ours would
  kUnsupportedPod,     // Windows
  kNoCommonMachine,    // two Datasets are required and no machine holds both
};

std::string_view OutcomeName(Outcome outcome);  // "injected"
std::string_view ReasonName(Reason reason);     // "unknown_dataset"

struct Injection {
  Outcome outcome = Outcome::kSkipped;
  Reason reason = Reason::kNotSelected;
  std::string message;                             // why it was denied, for people
  std::vector<std::string> warnings;               // shown by kubectl
  nlohmann::json patch = nlohmann::json::array();  // RFC 6902; empty: the pod stays as it is
};

// `pod` as it came, `name_space` that of the request.
Injection DecideInjection(const nlohmann::json& pod, std::string_view name_space,
                          const DatasetView& datasets, const InjectionSettings& settings);

}  // namespace optcache::webhook
