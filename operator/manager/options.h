#pragma once

// What the operator is told at its start; operator/README.md explains each.

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/object.h"
#include "operator/manager/proxy_variables.h"
#include "operator/pki/authority.h"

namespace optcache::manager {

struct OperatorOptions {
  std::string version;
  std::string name = "optcache";
  std::string system_namespace;
  std::string pod_name;
  std::string pod_ip;
  std::string sidecar_image;
  std::string image_pull_policy = "IfNotPresent";
  std::vector<std::string> image_pull_secrets;
  bool ordinary_sidecars = false;               // whatever the machines' versions
  kube::Json index_pod = kube::Json::object();  // see reconcile::ParseIndexPod
  ProxyOptions proxy;
  std::string webhook_address = "*:9443";
  std::string control_address = "*:8443";
  std::string metrics_address = "*:8080";
  // On which other replicas are reached for control; that of control_address.
  std::uint16_t control_port = 8443;
  authority::AuthoritySettings authority;  // its names are those above
  Duration lease_duration = std::chrono::seconds(15);
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry_period = std::chrono::seconds(2);
  Duration shutdown_delay = std::chrono::seconds(5);
  Duration drain_timeout = std::chrono::seconds(25);
};

inline constexpr const char* kFieldManager = "optcache-operator";

}  // namespace optcache::manager
