#pragma once

// A pod of ours in a Dataset's namespace that reads its source and talks with nodes: what index
// Jobs and warm-ups have in common.

#include <string>
#include <string_view>

#include "api/dataset.h"
#include "kube/object.h"
#include "operator/reconcile/decision.h"

namespace optcache::reconcile {

// Kubernetes replaces $(NAME) in arguments, and makes $$ a $.
std::string LiteralArgument(std::string_view text);

// The address of the source as such a pod reads it: a URL, a bucket's, or a folder.
std::string SourceAddress(const api::DatasetSpec& spec);

// The folder of the source's keys; empty: there are none.
std::string KeysFolder(const api::DatasetSpec& spec);

// --manifests, --node-ca and --token-file, onto `args`.
void AddNodeArguments(const ReconcileSettings& settings, kube::Json& args);

// The Job's labels and those that keep injectors away, also ours.
kube::Json SourcePodLabels(kube::Json job_labels);

// With one container of that name, unprivileged, and the volumes that this needs; `resources` are
// Kubernetes'.
kube::Json SourcePod(std::string_view container, const kube::Json& args,
                     const kube::Json& resources, const api::DatasetSpec& spec,
                     const ReconcileSettings& settings);

}  // namespace optcache::reconcile
