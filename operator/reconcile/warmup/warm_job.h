#pragma once

// The Job of a Warmup: one pod on each machine that holds a part of the Dataset, each with its
// part of the samples.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/dataset.h"
#include "api/warmup.h"
#include "base/bytes.h"
#include "kube/object.h"
#include "kube/object_cache.h"
#include "operator/api/dataset_status.h"
#include "operator/reconcile/decision.h"

namespace optcache::reconcile {

inline constexpr const char* kWarmupLabel = "optcache.io/warmup";  // of a Job and its pods
inline constexpr const char* kWarmComponent = "warmup";
// Of a Job: the Dataset, of its namespace, and the machines that it fills, by comma.
inline constexpr const char* kWarmsAnnotation = "optcache.io/warms";
inline constexpr const char* kWarmNodesAnnotation = "optcache.io/warm-nodes";
// A Job goes over this many machines at most.
inline constexpr std::size_t kMaxWarmNodes = 1000;

// What a Job is made of besides the Dataset's source.
struct WarmTarget {
  std::string manifest_digest;
  std::uint64_t samples = 0;
  ByteCount largest_sample = 0;
  std::string order;  // recipe of the job that is to come; empty: by id
  // Kubernetes', ascending, not empty, with what each has room for.
  std::vector<api::NodeBytes> nodes;
};

// "images-warm-0a1b2c3d4e", by the list of samples and the Warmup's spec: another one of either is
// another Job. Long names are cut so that it fits into a label.
std::string WarmJobName(std::string_view warmup, const api::WarmupSpec& spec,
                        std::string_view manifest_digest);

kube::Json BuildWarmJob(const kube::Json& warmup, const api::WarmupSpec& spec,
                        const api::DatasetSpec& dataset, const WarmTarget& target,
                        const ReconcileSettings& settings);

// The machines that such a Job fills.
std::set<std::string> MachinesOf(const kube::Json& warm_job);
// The machines that Jobs of Warmups fill, by "namespace/dataset". One that has ended counts for a
// few seconds more: then nodes have reported what they hold.
std::map<std::string, std::set<std::string>> MachinesBeingWarmed(const kube::ObjectCache& jobs,
                                                                 const kube::ObjectCache& pods,
                                                                 double now);

// What one pod has said at its end.
struct WarmResult {
  std::string at;             // its machine; empty: it did not say
  std::uint64_t samples = 0;  // that lie at nodes
  ByteCount bytes = 0;
  std::uint64_t no_room = 0;
  std::uint64_t failed = 0;   // that could not be read, few enough
  std::string first_failure;  // of one of them; empty: there is none
  std::string message;        // why it has failed; empty: it has not
};

// Nothing: the text is none of that.
std::optional<WarmResult> ParseWarmResult(std::string_view termination_message);

}  // namespace optcache::reconcile
