#include "operator/webhook/identity.h"

#include <limits>

#include "base/whole_number.h"

namespace optcache::webhook {
namespace {

constexpr std::size_t kMaxNameBytes = 100;
constexpr std::size_t kUidBytes = 8;
constexpr std::uint32_t kMaxIndex = 1U << 20U;

std::string Named(const std::string& name, const std::string& uid) {
  std::string owner = name.substr(0, kMaxNameBytes);
  if (!uid.empty()) owner += "." + uid.substr(0, kUidBytes);
  return owner;
}

// JobSet counts its restarts from 0, incarnations begin with 1.
std::uint32_t NextOf(const std::string& attempt) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max() - 1;
  const auto count = ParseWholeNumber<std::uint32_t>(attempt, kMost);
  return count ? *count + 1 : 1;
}

// The one that made the pod. A node is the "controller" of static pods and no job.
const Json* ControllerOf(const Json& pod) {
  for (const Json& owner : Items(Member(pod, "metadata"), "ownerReferences")) {
    if (Member(owner, "controller") == true && TextIn(owner, "kind") != "Node") return &owner;
  }
  return nullptr;
}

Identity FromPod(const Json& pod) {
  const Json& labels = Member(Member(pod, "metadata"), "labels");
  if (const std::string name = TextIn(labels, "jobset.sigs.k8s.io/jobset-name"); !name.empty()) {
    return {.owner = Named(name, TextIn(labels, "jobset.sigs.k8s.io/jobset-uid")),
            .incarnation = NextOf(TextIn(labels, "jobset.sigs.k8s.io/restart-attempt"))};
  }
  if (const std::string name = TextIn(labels, "leaderworkerset.sigs.k8s.io/name"); !name.empty()) {
    return {.owner = Named(name, TextIn(labels, "leaderworkerset.sigs.k8s.io/group-key"))};
  }
  const Json* const controller = ControllerOf(pod);
  if (controller == nullptr) return {};
  return {.owner = Named(TextIn(*controller, "name"), TextIn(*controller, "uid"))};
}

std::optional<std::uint32_t> NumberIn(const Json& labels, const char* name) {
  return ParseWholeNumber<std::uint32_t>(TextIn(labels, name), kMaxIndex - 1);
}

std::optional<std::uint32_t> IndexOf(const Json& pod) {
  const Json& metadata = Member(pod, "metadata");
  const Json& labels = Member(metadata, "labels");
  for (const char* const name :
       {"batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index",
        "leaderworkerset.sigs.k8s.io/worker-index"}) {
    if (const auto index = NumberIn(labels, name)) return index;
  }
  const auto replica = NumberIn(labels, "training.kubeflow.org/replica-index");
  if (replica) return *replica + (TextIn(labels, "training.kubeflow.org/replica-type") == "worker");
  return NumberIn(Member(metadata, "annotations"), "batch.kubernetes.io/job-completion-index");
}

}  // namespace

Identity IdentityOf(const Json& pod, const InjectionRequest& request) {
  Identity identity = FromPod(pod);
  identity.index = IndexOf(pod);
  if (!request.owner.empty()) identity.owner = request.owner;
  if (request.incarnation != 0) identity.incarnation = request.incarnation;
  return identity;
}

}  // namespace optcache::webhook
