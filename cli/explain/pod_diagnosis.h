#pragma once

// What `kubectl optcache explain pod` tells of a training pod: whether the sidecar was injected and
// why (not), where it runs, and where its samples came from.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/local/metrics_text.h"
#include "kube/object.h"

namespace optcache::cli {

struct DatasetAnswer {
  std::string name;                 // "namespace/name", as the pod's annotation means it
  std::optional<std::string> json;  // empty: it does not exist; nullopt: could not be had
};

// What the cluster answered, as JSON or Prometheus text. nullopt: could not be had, often because
// the user may not: nothing is concluded from that.
struct PodAnswers {
  std::string pod;
  std::vector<DatasetAnswer> datasets;   // those that the pod names
  std::optional<std::string> node_pods;  // a List of our node pods
  std::optional<std::string> injectors;  // a List of our MutatingWebhookConfigurations
  std::optional<std::string> metrics;    // of the sidecar's page
};

struct Reads {
  std::uint64_t node = 0;  // samples from the machine's own node
  std::uint64_t peer = 0;  // from another node
  std::uint64_t store = 0;
  double wait_seconds = 0;  // that training processes waited
  // Nothing was read: nullopt.
  std::optional<double> HitRatio() const;
  Reads& operator+=(const Reads& other);
  friend bool operator==(const Reads&, const Reads&) = default;
};

// Samples that the training processes compute (docs/user/computed.md).
struct Computed {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;    // computed by the process that asked
  std::uint64_t bytes = 0;     // kept now
  std::uint64_t capacity = 0;  // bytes; at least 1
  friend bool operator==(const Computed&, const Computed&) = default;
};

struct DatasetDiagnosis {
  std::string name;     // "namespace/name"
  std::string verdict;  // "Ready", "not Ready (Indexing): ...", "does not exist", "cannot be seen"
  friend bool operator==(const DatasetDiagnosis&, const DatasetDiagnosis&) = default;
};

struct PodDiagnosis {
  std::string name;  // "namespace/name"
  bool injected = false;
  std::string why;      // a sentence
  std::string machine;  // empty: not scheduled yet
  std::string node;     // about our node there, a sentence
  std::string sidecar;  // its state; empty: none
  bool sidecar_runs = false;
  std::optional<bool> has_node;  // that is ready, on its machine; nullopt: it cannot be seen
  std::vector<DatasetDiagnosis> datasets;
  std::optional<Reads> reads;
  std::optional<Computed> computed;  // the sidecar has memory for it
  std::vector<std::string> advice;   // what to do next
  friend bool operator==(const PodDiagnosis&, const PodDiagnosis&) = default;
};

// On a sidecar's page.
Reads ReadsIn(const std::vector<MetricSample>& metrics);

// Namespace and name of the Datasets in a pod's annotation, at most 16, as somebody wrote them;
// empty: it has none, or is no pod.
std::vector<kube::ObjectKey> DatasetsOfPod(std::string_view pod);

// The container of a pod's sidecar, native or, on old clusters, ordinary; null: it has none. No
// label tells, as a pod may be injected by an annotation alone.
const kube::Json* SidecarIn(const kube::Json& pod);

// kInvalidArgument: `answers.pod` is no pod.
Result<PodDiagnosis> DiagnosePod(const PodAnswers& answers);

// Pure; ends with a newline.
std::string FormatPodDiagnosis(const PodDiagnosis& diagnosis);
std::string ToJson(const PodDiagnosis& diagnosis);

}  // namespace optcache::cli
