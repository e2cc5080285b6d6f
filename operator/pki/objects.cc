#include "operator/pki/objects.h"

#include "base/base64.h"

namespace optcache::authority {
namespace {

using Json = nlohmann::json;

Json Labels() {
  return {{"app.kubernetes.io/managed-by", "optcache"}};
}

}  // namespace

SecretData ReadSecret(const Json& secret) {
  SecretData content;
  const auto data = secret.is_object() ? secret.find("data") : secret.end();
  if (data == secret.end() || !data->is_object()) return content;
  for (const auto& [key, value] : data->items()) {
    if (!value.is_string()) continue;
    if (auto bytes = DecodeBase64(value.get_ref<const std::string&>()))
      content[key] = *std::move(bytes);
  }
  return content;
}

Json BuildSecret(const AuthoritySettings& settings, const SecretData& data,
                 const std::string& version) {
  Json encoded = Json::object();
  for (const auto& [key, bytes] : data)
    encoded[key] = EncodeBase64(bytes);
  Json secret = {
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      // Its labels are the chart's, which makes it.
      {"metadata", {{"name", settings.name + "-pki"}, {"namespace", settings.system_namespace}}},
      {"data", std::move(encoded)}};
  if (!version.empty()) secret["metadata"]["resourceVersion"] = version;
  return secret;
}

Json BuildBundle(std::string_view name_space, const std::string& bundle) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", kBundleName}, {"namespace", name_space}, {"labels", Labels()}}},
          {"data", {{"ca.crt", bundle}}}};
}

Json BuildCaBundle(const std::string& bundle, const std::vector<std::string>& webhooks) {
  Json entries = Json::array();
  for (const std::string& name : webhooks)
    entries.push_back({{"name", name}, {"clientConfig", {{"caBundle", EncodeBase64(bundle)}}}});
  return {{"apiVersion", "admissionregistration.k8s.io/v1"},
          {"kind", "MutatingWebhookConfiguration"},
          {"metadata", {{"name", kInjectorName}}},
          {"webhooks", std::move(entries)}};
}

}  // namespace optcache::authority
