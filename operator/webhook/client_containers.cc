// Finds the containers that read through the sidecar, and adds to each what its client library
// needs.
//
// What a container says itself stays, and a warning tells of it: a pod's author wins over us. Each
// addition first looks whether it is there, so a second call adds nothing. PYTHONPATH is extended
// at its end, after the container's own entries.

#include "operator/webhook/client_containers.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "operator/webhook/sidecar_spec.h"

namespace optcache::webhook {
namespace {

// /var/run is /run in nearly all images.
std::string Normal(std::string path) {
  while (path.size() > 1 && path.ends_with('/'))
    path.pop_back();
  if (path == "/var/run" || path.starts_with("/var/run/")) path.erase(0, 4);
  return path;
}

bool IsOurs(const Json& mount) {
  return TextIn(mount, "name") == kRunVolume;
}

std::size_t IndexNamed(const Json& items, std::string_view name) {
  const Json* const found = FindNamed(items, name);
  return found == nullptr ? items.size() : static_cast<std::size_t>(found - &*items.begin());
}

bool HasEntry(std::string_view list, char separator, std::string_view entry) {
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(separator, at), list.size());
    if (list.substr(at, end - at) == entry) return true;
    at = end + 1;
  }
  return false;
}

// False: the container has another value, and keeps it.
bool SetUnlessSet(const ClientContainer& client, std::string_view name, const std::string& value,
                  PodPatch& patch, std::vector<std::string>& warnings) {
  const Json* const present = FindNamed(Items(*client.container, "env"), name);
  if (present == nullptr) {
    patch.Append(client.path, "env", {{"name", name}, {"value", value}});
    return true;
  }
  if (TextIn(*present, "value") == value) return true;
  if (name != "OPTCACHE_DATASET") {
    warnings.push_back(fmt::format("container {} sets {} itself: it does not use the sidecar{}",
                                   client.name(), name, name == "OPTCACHE_SOCKET" ? "" : " by S3"));
  }
  return false;
}

// Tells the client library that it may use the keys below that folder.
constexpr const char* kFallbackKeys = "OPTCACHE_FALLBACK_KEYS";

// Clients that sign want some keys, and the endpoint takes any.
constexpr const char* kPlaceholderKey = "optcache-placeholder";
constexpr auto kPlaceholders =
    std::to_array<std::string_view>({"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"});
// By each of these a client has keys already.
constexpr auto kKeySources = std::to_array<std::string_view>(
    {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
     "AWS_DEFAULT_PROFILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE",
     "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
     "AWS_CONTAINER_CREDENTIALS_FULL_URI"});

void AddPlaceholderKeys(const ClientContainer& client, PodPatch& patch,
                        std::vector<std::string>& warnings) {
  const Json& environment = Items(*client.container, "env");
  for (const std::string_view name : kKeySources) {
    const Json* const present = FindNamed(environment, name);
    if (present == nullptr || TextIn(*present, "value") == kPlaceholderKey) continue;
    // The injector may see a pod twice, and another webhook may come between.
    const Json* const placeholder = FindNamed(environment, kPlaceholders.front());
    const bool is_late = placeholder && TextIn(*placeholder, "value") == kPlaceholderKey;
    warnings.push_back(
        fmt::format("container {} sets {} itself: {}", client.name(), name,
                    is_late ? "the placeholder keys hide it; remove optcache.io/s3-placeholder-keys"
                            : "it gets no placeholder keys"));
    return;
  }
  for (const std::string_view name : kPlaceholders)
    SetUnlessSet(client, name, kPlaceholderKey, patch, warnings);
  if (!Items(*client.container, "envFrom").empty()) {
    warnings.push_back(
        fmt::format("container {} has envFrom: if AWS keys come from there, the placeholder keys "
                    "hide them; remove optcache.io/s3-placeholder-keys then",
                    client.name()));
  }
}

// The container's own entries come first.
void AddToPythonPath(const ClientContainer& client, PodPatch& patch,
                     std::vector<std::string>& warnings) {
  const Json& environment = Items(*client.container, "env");
  const std::size_t index = IndexNamed(environment, "PYTHONPATH");
  if (index == environment.size()) {
    patch.Append(client.path, "env", {{"name", "PYTHONPATH"}, {"value", kPythonFolder}});
    return;
  }
  if (environment[index].contains("valueFrom")) {
    warnings.push_back(fmt::format(
        "PYTHONPATH of container {} comes from elsewhere: add {} to it, or install the package",
        client.name(), kPythonFolder));
    return;
  }
  const std::string value = TextIn(environment[index], "value");
  if (HasEntry(value, ':', kPythonFolder)) return;
  patch.Set(client.path / "env" / index, "value",
            value.empty() ? std::string(kPythonFolder) : value + ":" + kPythonFolder);
}

// Libraries read either spelling; the lower-case one counts first. Null: the container sets
// neither.
const Json* FindProxy(const Json& environment, std::string_view lower, std::string_view upper) {
  const Json* const found = FindNamed(environment, lower);
  return found != nullptr ? found : FindNamed(environment, upper);
}

bool LeavesLoopbackAlone(const Json& no_proxy) {
  std::string list = TextIn(no_proxy, "value");
  std::erase(list, ' ');
  return no_proxy.contains("valueFrom") || HasEntry(list, ',', "127.0.0.1") || list == "*";
}

// Clients would ask the proxy for the endpoint, and it has a loopback of its own.
void WarnOfProxy(const ClientContainer& client, std::vector<std::string>& warnings) {
  const Json& environment = Items(*client.container, "env");
  const Json* const proxy = FindProxy(environment, "http_proxy", "HTTP_PROXY");
  const Json* const no_proxy = FindProxy(environment, "no_proxy", "NO_PROXY");
  if (proxy == nullptr || (no_proxy != nullptr && LeavesLoopbackAlone(*no_proxy))) return;
  if (!proxy->contains("valueFrom") && TextIn(*proxy, "value").empty()) return;
  warnings.push_back(
      fmt::format("container {} sets {}: add 127.0.0.1 to its no_proxy, or its clients ask that "
                  "proxy for the sidecar's S3 endpoint",
                  client.name(), TextIn(*proxy, "name")));
}

void Collect(const Json& pod, const char* list, const InjectionRequest& request,
             std::vector<ClientContainer>& clients) {
  const bool init = std::string_view(list) == "initContainers";
  const Json& containers = Items(Member(pod, "spec"), list);
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const std::string name = TextIn(containers[i], "name");
    const bool named = std::ranges::find(request.containers, name) != request.containers.end();
    if (name == kSidecarName || (request.containers.empty() ? init : !named)) continue;
    clients.push_back({.path = Json::json_pointer("/spec") / list / i,
                       .container = &containers[i],
                       .init = init});
  }
}

}  // namespace

Result<std::vector<ClientContainer>> ClientsOf(const Json& pod, const InjectionRequest& request) {
  std::vector<ClientContainer> clients;
  Collect(pod, "containers", request, clients);
  Collect(pod, "initContainers", request, clients);
  for (const std::string& name : request.containers) {
    const bool found = std::ranges::any_of(
        clients, [&](const ClientContainer& client) { return client.name() == name; });
    if (!found) {
      return Error(Code::kInvalidArgument,
                   fmt::format("annotation optcache.io/containers names {}, which the pod does not "
                               "have",
                               Quote(name)));
    }
  }
  return clients;
}

Status CheckMounts(const std::vector<ClientContainer>& clients) {
  for (const ClientContainer& client : clients) {
    for (const Json& mount : Items(*client.container, "volumeMounts")) {
      const std::string path = Normal(TextIn(mount, "mountPath"));
      const bool there = path == kRunFolder || path.starts_with(std::string(kRunFolder) + "/");
      if (there && !IsOurs(mount)) {
        return {Code::kConflict,
                fmt::format("container {} mounts volume {} at {}, where the sidecar's socket goes: "
                            "mount it elsewhere",
                            Quote(client.name()), Quote(TextIn(mount, "name")), Quote(path))};
      }
    }
  }
  return OkStatus();
}

void Wire(const ClientContainer& client, const Wiring& wiring, PodPatch& patch,
          std::vector<std::string>& warnings) {
  const Json& mounts = Items(*client.container, "volumeMounts");
  if (std::ranges::none_of(mounts, IsOurs)) {
    Json mount = {{"name", kRunVolume}, {"mountPath", kRunFolder}};
    if (!wiring.writable) mount["readOnly"] = true;
    patch.Append(client.path, "volumeMounts", std::move(mount));
  }
  for (const Json& mount : wiring.fallback_mounts) {
    const std::string path = TextIn(mount, "mountPath");
    const bool taken = std::ranges::any_of(
        mounts, [&](const Json& present) { return Normal(TextIn(present, "mountPath")) == path; });
    if (!taken) patch.Append(client.path, "volumeMounts", mount);
  }
  SetUnlessSet(client, "OPTCACHE_SOCKET", kSocket, patch, warnings);
  SetUnlessSet(client, "OPTCACHE_DATASET", wiring.request->datasets.front().QualifiedName(), patch,
               warnings);
  if (wiring.request->s3_endpoint &&
      SetUnlessSet(client, "AWS_ENDPOINT_URL_S3", kS3Url, patch, warnings)) {
    WarnOfProxy(client, warnings);
    if (wiring.request->s3_placeholder_keys) AddPlaceholderKeys(client, patch, warnings);
  }
  if (wiring.request->fallback_keys &&
      FindNamed(Items(*client.container, "env"), kFallbackKeys) == nullptr) {
    patch.Append(client.path, "env", {{"name", kFallbackKeys}, {"value", kKeysFolder}});
  }
  if (wiring.request->python) AddToPythonPath(client, patch, warnings);
}

}  // namespace optcache::webhook
