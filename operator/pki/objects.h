#pragma once

// The objects in which certificates lie: read as they come, and built for server-side apply.

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "operator/pki/authority.h"

namespace optcache::authority {

inline constexpr const char* kBundleName = "optcache-ca";     // the ConfigMap
inline constexpr const char* kFieldManager = "optcache-pki";  // of the caBundle
// The MutatingWebhookConfiguration. Not named after the installation: there is one in a cluster.
inline constexpr const char* kInjectorName = "optcache-injector";

// The `data` of a Secret; what is not base64 is left out.
SecretData ReadSecret(const nlohmann::json& secret);

// SYSTEM/NAME-pki. `version`: the resourceVersion of the Secret that was decided about, so that
// nothing is written over a newer one; empty: whatever is there.
nlohmann::json BuildSecret(const AuthoritySettings& settings, const SecretData& data,
                           const std::string& version = "");

// The ConfigMap optcache-ca of a namespace that uses a Dataset.
nlohmann::json BuildBundle(std::string_view name_space, const std::string& bundle);

// The caBundle of each entry in kInjectorName, and nothing else of it.
nlohmann::json BuildCaBundle(const std::string& bundle, const std::vector<std::string>& webhooks);

}  // namespace optcache::authority
