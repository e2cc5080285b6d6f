#pragma once

// The containers that are to read through the sidecar: they get its socket and the environment of
// the client library.

#include <string>
#include <vector>

#include "base/result.h"
#include "operator/webhook/json_access.h"
#include "operator/webhook/pod_patch.h"
#include "operator/webhook/request.h"

namespace optcache::webhook {

struct ClientContainer {
  Json::json_pointer path;  // "/spec/containers/0"
  const Json* container = nullptr;
  bool init = false;
  std::string name() const { return TextIn(*container, "name"); }
};

// Those that the request names, or all but init containers and the sidecar. They point into `pod`.
// kInvalidArgument: a name that the pod does not have.
Result<std::vector<ClientContainer>> ClientsOf(const Json& pod, const InjectionRequest& request);

// kConflict: a volume of the pod's own is mounted where the socket goes.
Status CheckMounts(const std::vector<ClientContainer>& clients);

struct Wiring {
  const InjectionRequest* request = nullptr;
  bool writable = false;                 // the container ends the sidecar by a file there
  Json fallback_mounts = Json::array();  // see FallbackMountsOf
};

// Adds what is not there yet, and leaves alone what the pod says itself; `warnings` tell of that.
void Wire(const ClientContainer& client, const Wiring& wiring, PodPatch& patch,
          std::vector<std::string>& warnings);

}  // namespace optcache::webhook
