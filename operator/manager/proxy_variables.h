#pragma once

// The proxies between the pods of a cluster and the sources of Datasets.

#include <string>

#include "kube/object.h"

namespace optcache::manager {

// As curl has them; empty: none.
struct ProxyOptions {
  std::string http;   // for sources with http://
  std::string https;  // for sources with https://
  std::string none;   // hosts that are asked without a proxy, separated by commas
};

// Of a container that reads sources: entries of `env`, none without a proxy.
kube::Json ProxyVariables(const ProxyOptions& proxy);

}  // namespace optcache::manager
