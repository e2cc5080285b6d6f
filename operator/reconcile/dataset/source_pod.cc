#include "operator/reconcile/dataset/source_pod.h"

#include <utility>

#include <fmt/format.h>

namespace optcache::reconcile {
namespace {

using kube::Json;

constexpr int kUser = 65532;  // the image's own
constexpr int kTokenSeconds = 3600;
constexpr const char* kClaimFolder = "/mnt/optcache";
constexpr const char* kStsToken = "/var/run/secrets/optcache/sts-token";
constexpr const char* kKeysFolder = "/etc/optcache/keys";

// The Secret; empty: there is none.
std::string KeysOf(const api::DatasetSpec& spec) {
  if (const auto* s3 = std::get_if<api::S3Source>(&spec.source)) return s3->secret;
  const auto* http = std::get_if<api::HttpSource>(&spec.source);
  return http == nullptr ? "" : http->secret;
}

bool HasWebIdentity(const api::DatasetSpec& spec) {
  const auto* s3 = std::get_if<api::S3Source>(&spec.source);
  return s3 != nullptr && s3->web_identity();
}

Json Mount(const char* volume, const char* folder) {
  return {{"name", volume}, {"mountPath", folder}, {"readOnly", true}};
}

Json Mounts(const api::DatasetSpec& spec) {
  Json mounts = {Mount("token", "/var/run/secrets/optcache"), Mount("ca", "/etc/optcache/ca")};
  if (std::holds_alternative<api::ClaimSource>(spec.source))
    mounts.push_back(Mount("data", kClaimFolder));
  if (!KeysOf(spec).empty()) mounts.push_back(Mount("keys", kKeysFolder));
  return mounts;
}

Json Token(const char* audience, const char* path) {
  return {{"serviceAccountToken",
           {{"audience", audience}, {"expirationSeconds", kTokenSeconds}, {"path", path}}}};
}

Json Volumes(const api::DatasetSpec& spec) {
  Json volumes = Json::array();
  Json tokens = Json::array({Token("optcache", "token")});
  if (HasWebIdentity(spec)) tokens.push_back(Token("sts.amazonaws.com", "sts-token"));
  volumes.push_back({{"name", "token"}, {"projected", {{"sources", std::move(tokens)}}}});
  volumes.push_back({{"name", "ca"}, {"configMap", {{"name", "optcache-ca"}}}});
  if (const auto* claim = std::get_if<api::ClaimSource>(&spec.source)) {
    volumes.push_back(
        {{"name", "data"},
         {"persistentVolumeClaim", {{"claimName", claim->claim}, {"readOnly", true}}}});
  }
  // Optional: the Job says what is missing, where a pod would only wait.
  if (const std::string secret = KeysOf(spec); !secret.empty()) {
    volumes.push_back({{"name", "keys"}, {"secret", {{"secretName", secret}, {"optional", true}}}});
  }
  return volumes;
}

}  // namespace

std::string LiteralArgument(std::string_view text) {
  std::string escaped;
  for (const char c : text)
    escaped += c == '$' ? std::string("$$") : std::string(1, c);
  return escaped;
}

std::string SourceAddress(const api::DatasetSpec& spec) {
  if (const auto* http = std::get_if<api::HttpSource>(&spec.source)) return http->base_url;
  if (const auto* s3 = std::get_if<api::S3Source>(&spec.source))
    return api::AddressOf(*s3, kStsToken);
  const auto& claim = std::get<api::ClaimSource>(spec.source);
  return claim.path.empty() ? kClaimFolder : fmt::format("{}/{}", kClaimFolder, claim.path);
}

std::string KeysFolder(const api::DatasetSpec& spec) {
  return KeysOf(spec).empty() ? "" : kKeysFolder;
}

void AddNodeArguments(const ReconcileSettings& settings, Json& args) {
  for (const char* service : {"node", "nodes"}) {
    args.push_back("--manifests");
    args.push_back(fmt::format("https://{}-{}.{}.svc:4102", settings.name, service,
                               settings.system_namespace));
  }
  for (const char* word :
       {"--node-ca", "/etc/optcache/ca/ca.crt", "--token-file", "/var/run/secrets/optcache/token"})
    args.push_back(word);
}

Json SourcePodLabels(Json job_labels) {
  job_labels["optcache.io/inject"] = "false";
  job_labels["sidecar.istio.io/inject"] = "false";
  return job_labels;
}

Json SourcePod(std::string_view container, const Json& args, const Json& resources,
               const api::DatasetSpec& spec, const ReconcileSettings& settings) {
  Json security = {{"runAsNonRoot", true},
                   {"runAsUser", kUser},
                   {"runAsGroup", kUser},
                   {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  security.update(settings.index_pod.value("securityContext", Json::object()));
  Json only = {{"name", container},
               {"image", settings.sidecar_image},
               {"imagePullPolicy", settings.image_pull_policy},
               {"command", {"optcache-sidecar"}},
               {"args", args},
               {"resources", resources},
               {"securityContext",
                {{"allowPrivilegeEscalation", false},
                 {"capabilities", {{"drop", {"ALL"}}}},
                 {"readOnlyRootFilesystem", true}}},
               {"terminationMessagePolicy", "FallbackToLogsOnError"},
               {"volumeMounts", Mounts(spec)}};
  if (!settings.source_variables.empty()) only["env"] = settings.source_variables;
  Json pod = {{"restartPolicy", "Never"},
              {"automountServiceAccountToken", false},
              {"securityContext", std::move(security)},
              {"containers", Json::array({std::move(only)})},
              {"volumes", Volumes(spec)}};
  for (const std::string& secret : settings.image_pull_secrets)
    pod["imagePullSecrets"].push_back({{"name", secret}});
  return pod;
}

}  // namespace optcache::reconcile
