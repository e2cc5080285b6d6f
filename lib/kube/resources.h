#pragma once

// The kinds of objects that we speak of, and where the API server keeps them.

#include <string>
#include <string_view>

namespace optcache::kube {

// A value made of literals.
struct Resource {
  std::string_view group;  // empty: the core group
  std::string_view version;
  std::string_view kind;
  std::string_view plural;
  bool namespaced = true;

  // "batch/v1", or "v1" in the core group.
  std::string ApiVersion() const;
  // "/apis/batch/v1/namespaces/NS/jobs/NAME/SUBRESOURCE"; what is empty is left out, `ns` also
  // where the kind has no namespace. Names are percent-encoded.
  std::string Path(std::string_view ns, std::string_view name = {},
                   std::string_view subresource = {}) const;
  friend bool operator==(const Resource&, const Resource&) = default;
};

inline constexpr Resource kPods{.version = "v1", .kind = "Pod", .plural = "pods"};
inline constexpr Resource kNodes{
    .version = "v1", .kind = "Node", .plural = "nodes", .namespaced = false};
inline constexpr Resource kNamespaces{
    .version = "v1", .kind = "Namespace", .plural = "namespaces", .namespaced = false};
inline constexpr Resource kConfigMaps{.version = "v1", .kind = "ConfigMap", .plural = "configmaps"};
inline constexpr Resource kSecrets{.version = "v1", .kind = "Secret", .plural = "secrets"};
inline constexpr Resource kServices{.version = "v1", .kind = "Service", .plural = "services"};
inline constexpr Resource kJobs{.group = "batch", .version = "v1", .kind = "Job", .plural = "jobs"};
inline constexpr Resource kControllerRevisions{.group = "apps",
                                               .version = "v1",
                                               .kind = "ControllerRevision",
                                               .plural = "controllerrevisions"};
inline constexpr Resource kLeases{
    .group = "coordination.k8s.io", .version = "v1", .kind = "Lease", .plural = "leases"};
inline constexpr Resource kEvents{
    .group = "events.k8s.io", .version = "v1", .kind = "Event", .plural = "events"};
inline constexpr Resource kTokenReviews{.group = "authentication.k8s.io",
                                        .version = "v1",
                                        .kind = "TokenReview",
                                        .plural = "tokenreviews",
                                        .namespaced = false};
inline constexpr Resource kMutatingWebhookConfigurations{.group = "admissionregistration.k8s.io",
                                                         .version = "v1",
                                                         .kind = "MutatingWebhookConfiguration",
                                                         .plural = "mutatingwebhookconfigurations",
                                                         .namespaced = false};

}  // namespace optcache::kube
