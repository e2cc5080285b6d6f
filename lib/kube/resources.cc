#include "kube/resources.h"

#include "base/percent_encoding.h"

namespace optcache::kube {

std::string Resource::ApiVersion() const {
  std::string text(group);
  if (!text.empty()) text += '/';
  return text.append(version);
}

std::string Resource::Path(std::string_view ns, std::string_view name,
                           std::string_view subresource) const {
  std::string path = group.empty() ? "/api/" : "/apis/";
  path += ApiVersion();
  if (namespaced && !ns.empty()) path.append("/namespaces/").append(PercentEncode(ns));
  path.append("/").append(plural);
  if (!name.empty()) path.append("/").append(PercentEncode(name));
  if (!subresource.empty()) path.append("/").append(subresource);
  return path;
}

}  // namespace optcache::kube
