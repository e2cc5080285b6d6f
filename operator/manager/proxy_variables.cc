#include "operator/manager/proxy_variables.h"

#include "operator/reconcile/dataset/source_pod.h"

namespace optcache::manager {

kube::Json ProxyVariables(const ProxyOptions& proxy) {
  kube::Json variables = kube::Json::array();
  if (proxy.http.empty() && proxy.https.empty()) return variables;
  const auto add = [&variables](const char* name, const std::string& value) {
    if (!value.empty())
      variables.push_back({{"name", name}, {"value", reconcile::LiteralArgument(value)}});
  };
  // curl reads http_proxy in no other spelling.
  add("http_proxy", proxy.http);
  add("https_proxy", proxy.https);
  add("no_proxy", proxy.none);
  return variables;
}

}  // namespace optcache::manager
