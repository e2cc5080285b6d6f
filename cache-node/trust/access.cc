#include "cache-node/trust/access.h"

#include <algorithm>

#include <fmt/format.h>

#include "coordination/desired_state.h"
#include "wire/stream_id.h"

namespace optcache::node {

bool Owns(std::string_view name_space, std::string_view dataset_name) {
  return dataset_name.contains('/') && coordination::NamespaceOf(dataset_name) == name_space;
}

Status MayUse(const Caller& caller, const coordination::DatasetState& dataset) {
  if (Owns(caller.name_space, dataset.name)) return OkStatus();
  if (std::ranges::find(dataset.namespaces, caller.name_space) != dataset.namespaces.end()) {
    return OkStatus();
  }
  return {Code::kPermissionDenied,
          fmt::format("namespace {} may not use dataset {}: it is not in the Dataset's spec.access",
                      caller.name_space, dataset.name)};
}

Status MayConnect(const Caller& caller, const wire::Hello& hello) {
  if (caller.pod.empty()) {
    return {Code::kPermissionDenied, "the token is not bound to a pod: use a projected one"};
  }
  if (hello.name == NameOf(caller)) return OkStatus();
  return {Code::kPermissionDenied,
          fmt::format("the token is of pod {}, the sidecar says that it is {}: give it --name "
                      "NAMESPACE/POD",
                      NameOf(caller), hello.name)};
}

Status MayAnnounce(const Caller& caller, const wire::StreamAttach& attach,
                   const coordination::DesiredState& state) {
  if (!attach.stream_name.starts_with(caller.name_space + "/")) {
    return {Code::kPermissionDenied, fmt::format("pod {} announces stream {} of another namespace",
                                                 NameOf(caller), attach.stream_name)};
  }
  const coordination::DatasetState* dataset = coordination::FindDataset(state, attach.dataset_name);
  if (dataset != nullptr) {
    RETURN_IF_ERROR(MayUse(caller, *dataset));
  } else if (!Owns(caller.name_space, attach.dataset_name)) {
    return {Code::kPermissionDenied, fmt::format("this node knows no dataset {} that namespace {} "
                                                 "may use",
                                                 attach.dataset_name, caller.name_space)};
  }
  const coordination::DatasetState* keyed = coordination::FindDataset(state, attach.dataset);
  if (keyed != nullptr && keyed->name != attach.dataset_name) {
    return {Code::kPermissionDenied,
            fmt::format("pod {} says {} and means the manifest of another dataset", NameOf(caller),
                        attach.dataset_name)};
  }
  if (attach.stream == wire::StreamIdOf(attach.stream_name, attach.incarnation)) return OkStatus();
  return {Code::kPermissionDenied,
          fmt::format("pod {} announces a stream under the id of another", NameOf(caller))};
}

}  // namespace optcache::node
