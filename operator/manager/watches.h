#pragma once

// Everything that the operator watches, on every replica: one that becomes the leader knows the
// cluster already. Only the fields that are read are kept.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "kube/client.h"
#include "kube/informer.h"
#include "net/event_loop.h"

namespace optcache::manager {

// Label and annotations of training pods, docs/kubernetes.md.
inline constexpr const char* kInjectLabel = "optcache.io/inject";
inline constexpr const char* kDatasetAnnotation = "optcache.io/dataset";
inline constexpr const char* kInjectedAnnotation = "optcache.io/injected";
inline constexpr const char* kResultsAnnotation = "optcache.io/results";
inline constexpr const char* kOptionalAnnotation = "optcache.io/optional";

// In the place of a training pod's containers: whether one of them asks for GPUs and may still run,
// and whether one has the sidecar's name.
inline constexpr const char* kWantsGpus = "/optcacheWantsGpus";
inline constexpr const char* kHasSidecar = "/optcacheHasSidecar";

// A resource that counts GPUs or what is used as one: "nvidia.com/gpu", "nvidia.com/mig-1g.10gb",
// "gpu.intel.com/xe", "google.com/tpu".
bool IsGpu(std::string_view resource);

// What is left of an object in a cache of thousands. Machines: labels, whether they are cordoned,
// GPUs and the kubelet's version; training pods: namespace, owner, our annotations, phase,
// kWantsGpus and kHasSidecar, kLastWord.
void ReduceNode(kube::Json& node);
void ReduceTrainingPod(kube::Json& pod);

// Used on the loop's thread only. `loop`, `clock` and `client` outlive it. `seed`: of the jitter,
// of each replica another, so that they do not come back to the API server together.
struct Watches {
  Watches(net::EventLoop& loop, const Clock& clock, kube::Client& client, const std::string& name,
          const std::string& system_namespace, std::uint64_t seed);

  kube::Informer datasets;
  kube::Informer plans;          // index by Dataset
  kube::Informer revisions;      // ControllerRevisions of plans, by plan
  kube::Informer warmups;        // index by Dataset
  kube::Informer jobs;           // of ours, index by Dataset and by Warmup
  kube::Informer job_pods;       // of those, by Job
  kube::Informer training_pods;  // those with the label, as ReduceTrainingPod leaves them
  kube::Informer node_pods;      // of the DaemonSet
  kube::Informer nodes;          // all machines of the cluster
  kube::Informer bundles;        // the ConfigMaps optcache-ca of all namespaces
  kube::Informer secret;         // SYSTEM/NAME-pki
  kube::Informer injectors;      // authority::kInjectorName

  std::vector<kube::Informer*> All();
  void Start();
  void Stop();
  // Names the kinds that are not listed yet; empty: all are.
  std::string Missing();
  void VisitCounters(const CounterVisitor& visitor);
};

}  // namespace optcache::manager
