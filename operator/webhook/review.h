#pragma once

// AdmissionReview (admission.k8s.io/v1) in and out. Pure.

#include <string>
#include <string_view>

#include "base/result.h"
#include "operator/webhook/inject.h"

namespace optcache::webhook {

struct Review {
  std::string uid;
  std::string name_space;
  std::string name;  // of the pod; with generateName that and a star
  bool creates_pod = false;
  bool dry_run = false;  // nothing is stored
  nlohmann::json pod;
};

// kInvalidArgument: no AdmissionReview of that version, or one that contradicts itself.
Result<Review> ParseReview(std::string_view body);

// A Dataset that is in every namespace for dry runs, and for them alone: by it `helm test` learns
// whether an injected pod is admitted.
inline constexpr const char* kCheckDataset = "optcache-check-injection";

// What the injector says about it.
Injection DecideReview(const Review& review, const DatasetView& datasets,
                       const InjectionSettings& settings);

// The response's body: allowed, or why not; patch, warnings, and outcome and reason for the API
// server's audit log.
std::string WriteReview(const Review& review, const Injection& injection);

}  // namespace optcache::webhook
