#pragma once

// The injected container and its volumes, as docs/kubernetes.md ("The injected sidecar") has them.

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "operator/webhook/dataset_view.h"
#include "operator/webhook/identity.h"
#include "operator/webhook/json_access.h"
#include "operator/webhook/request.h"
#include "operator/webhook/settings.h"

namespace optcache::webhook {

inline constexpr const char* kSidecarName = "optcache-sidecar";
inline constexpr const char* kRunVolume = "optcache-run";
inline constexpr const char* kRunFolder = "/run/optcache";
inline constexpr const char* kSocket = "/run/optcache/sock";
inline constexpr const char* kExitFile = "/run/optcache/exit";
inline constexpr const char* kPythonFolder = "/run/optcache/python";
inline constexpr const char* kClaimsFolder = "/mnt/optcache/";
inline constexpr const char* kKeysFolder = "/etc/optcache/keys";
inline constexpr int kPagesPort = 4103;
// On the pod's loopback alone.
inline constexpr const char* kS3Address = "127.0.0.1:4104";
inline constexpr const char* kS3Url = "http://127.0.0.1:4104";
// The image's user, named where a pod's own user is root.
inline constexpr int kSidecarUser = 65532;

// A Dataset as this pod uses it.
struct ChosenDataset {
  const DatasetFacts* facts = nullptr;
  std::string secret;                 // of the pod's namespace; empty: none
  std::string claim;                  // of the pod's namespace; empty: none
  bool web_identity = false;          // keys come for the pod's own token
  bool ambient_keys = true;           // keys of the sidecar's surroundings count
  std::vector<std::string> warnings;  // of this choice
  std::string claim_volume;           // the volume of that claim
  bool adds_claim_volume = false;     // the pod has none of that claim yet
};

struct SidecarPlan {
  InjectionRequest request;
  Identity identity;
  std::vector<ChosenDataset> datasets;
  // Set where pod and settings are known.
  bool native = true;             // an init container that runs as long as the pod
  bool ends_by_itself = false;    // an ordinary container of a pod that is to end
  bool shares_processes = false;  // so that it sees when the others have ended
  bool ends_at_once = false;      // then no container comes after that
  bool host_network = false;      // the port is the machine's: the pages stay on the loopback
  // Kubernetes holds the whole pod to the limits of disk that its containers have: one of ours is
  // for the others, too, unless they have one each.
  bool limits_storage = false;
  Json security_context;  // who it runs as; see SecurityContextFor
};

// Bytes beside the arena for samples that do not fit it (docs/memory.md).
ByteCount OverflowFor(ByteCount largest_sample);
// The memory limit: shared memory (the arena and that for computed samples), overflow, what is kept
// of each sample, and the program itself. Datasets that are not indexed count as kUnindexedSamples.
inline constexpr std::uint64_t kUnindexedSamples = 2'500'000;
ByteCount MemoryFor(ByteCount shared, const std::vector<ChosenDataset>& datasets);
// The request of disk: manifests, Python package and log.
ByteCount StorageFor(const std::vector<ChosenDataset>& datasets);

// PodSecurity `restricted`, as the pod's own user where it is none of root's: what the socket needs
// is given to everybody, but files of a claim are read as the training container reads them.
Json SecurityContextFor(const Json& pod, const Json& client_container);

// What the containers that train read the sources by while the sidecar does not answer: the claims
// that the Datasets lie in and, if the pod asks for them, the keys, both at the sidecar's paths.
Json FallbackMountsOf(const SidecarPlan& plan);
// The same, of a pod with this spec, which has the sidecar already.
Json FallbackMountsIn(const Json& spec, const InjectionRequest& request);

Json BuildContainer(const SidecarPlan& plan, const InjectionSettings& settings);

std::vector<Json> BuildVolumes(const SidecarPlan& plan);

// Of a pod with this spec: an init container, or an ordinary one before Kubernetes 1.29. Null: it
// has none.
const Json* FindSidecar(const Json& spec);

}  // namespace optcache::webhook
