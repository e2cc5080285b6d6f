// Builds the injected container and its volumes from a plan in which everything has been decided.
//
// Each function makes one part: arguments, environment, mounts, resources, security context,
// volumes. Mounts and volumes go through the Datasets in one order, so the number in a Secret's
// volume is the same in both. Optional volumes (the CA, Secrets) hold no pod that they are missing
// for. Text from a user in an argument has its $ doubled, since Kubernetes replaces $(NAME).

#include "operator/webhook/sidecar_spec.h"

#include <algorithm>

#include <fmt/format.h>

namespace optcache::webhook {
namespace {

constexpr ByteCount kDefaultOverflow = 256_MiB;  // of optcache-sidecar --overflow
constexpr ByteCount kProgramBytes = 32_MiB;
constexpr ByteCount kBytesPerSample = 100;
constexpr ByteCount kFilesBytes = 64_MiB;          // Python package and log
constexpr ByteCount kManifestBytesMax = 4096_MiB;  // that the sidecar takes
constexpr ByteCount kCopiesOfManifest = 2;         // while one is written again
constexpr const char* kTokenVolume = "optcache-token";
constexpr const char* kTokenFolder = "/var/run/secrets/optcache";
constexpr const char* kCaVolume = "optcache-ca";
constexpr const char* kCaFolder = "/etc/optcache/ca";
constexpr int kTokenSeconds = 3600;
// For the training containers: the sidecar's volume of tokens has the one for nodes, too. No
// namespace is named so.
constexpr const char* kIdentityVolume = "optcache-identity";
constexpr const char* kIdentityFolder = "/etc/optcache/keys/_identity";
constexpr const char* kStsAudience = "sts.amazonaws.com";
constexpr const char* kStsTokenFile = "sts-token";

// Kubernetes replaces $(NAME) in arguments and environments, and makes $$ a $.
std::string Literal(std::string_view text) {
  std::string escaped;
  for (const char c : text)
    escaped += c == '$' ? std::string("$$") : std::string(1, c);
  return escaped;
}

std::string MebibytesOf(ByteCount bytes) {
  return fmt::format("{}Mi", (bytes + 1_MiB - 1) / 1_MiB);
}

ByteCount LargestOf(const std::vector<ChosenDataset>& datasets) {
  ByteCount largest = 0;
  for (const ChosenDataset& dataset : datasets)
    largest = std::max(largest, dataset.facts->largest_sample);
  return largest;
}

std::uint64_t SamplesOf(const std::vector<ChosenDataset>& datasets) {
  std::uint64_t samples = 0;
  for (const ChosenDataset& dataset : datasets)
    samples += dataset.facts->indexed ? dataset.facts->samples : kUnindexedSamples;
  return samples;
}

std::string ClaimFolder(const DatasetFacts& facts) {
  return kClaimsFolder + facts.QualifiedName();
}

std::string SecretFolder(const DatasetFacts& facts) {
  return fmt::format("{}/{}", kKeysFolder, facts.QualifiedName());
}

std::string AddressOf(const ChosenDataset& dataset) {
  const DatasetFacts& facts = *dataset.facts;
  if (dataset.claim.empty()) return dataset.web_identity ? facts.url_by_identity : facts.url;
  return ClaimFolder(facts) + (facts.claim_folder.empty() ? "" : "/" + facts.claim_folder);
}

Json ArgumentsOf(const SidecarPlan& plan, const InjectionSettings& settings) {
  const std::string suffix = settings.system_namespace + ".svc";
  Json args = Json::array();
  const auto add = [&args](std::string_view flag, std::string value) {
    args.push_back(flag);
    args.push_back(std::move(value));
  };
  add("--name", "$(POD_NAMESPACE)/$(POD_NAME)");
  add("--socket", kSocket);
  add("--metrics-address", plan.host_network ? "127.0.0.1:0" : fmt::format("*:{}", kPagesPort));
  add("--arena", plan.request.arena);
  if (!plan.request.computed.empty()) add("--computed", plan.request.computed);
  if (!plan.request.headspace.empty()) add("--headspace", plan.request.headspace);
  add("--termination-file", "/dev/termination-log");
  if (plan.request.s3_endpoint) add("--s3", kS3Address);
  if (!plan.request.sampler.empty()) {
    add("--sampler", plan.datasets.front().facts->QualifiedName() + "=" + plan.request.sampler);
    add("--pod-index", std::to_string(plan.identity.index.value_or(0)));
  }
  if (const ByteCount overflow = OverflowFor(LargestOf(plan.datasets)); overflow > kDefaultOverflow)
    add("--overflow", MebibytesOf(overflow));
  add("--node", fmt::format("{}-node.{}:4100", settings.name, suffix));
  add("--node-ca", fmt::format("{}/ca.crt", kCaFolder));
  add("--token-file", fmt::format("{}/token", kTokenFolder));
  add("--manifests", fmt::format("https://{}-node.{}:4102", settings.name, suffix));
  add("--manifests", fmt::format("https://{}-nodes.{}:4102", settings.name, suffix));
  for (const ChosenDataset& dataset : plan.datasets) {
    const std::string name = dataset.facts->QualifiedName();
    add("--dataset", Literal(name + "==" + AddressOf(dataset)));
    if (!dataset.secret.empty()) add("--keys", name + "=" + SecretFolder(*dataset.facts));
    if (!dataset.ambient_keys) add("--no-ambient-keys", name);
    if (dataset.facts->requests_per_second > 0) {
      add("--requests-per-second", fmt::format("{}={}", name, dataset.facts->requests_per_second));
    }
    if (dataset.facts->bytes_per_second > 0)
      add("--bytes-per-second", fmt::format("{}={}", name, dataset.facts->bytes_per_second));
    if (dataset.facts->patience_seconds > 0)
      add("--patience", fmt::format("{}={}s", name, dataset.facts->patience_seconds));
    const dataset::StorePrice& price = dataset.facts->price;
    if (price.per_request > 0)
      add("--price-per-request", name + "=" + dataset::FormatPrice(price.per_request));
    if (price.per_gib > 0) add("--price-per-gib", name + "=" + dataset::FormatPrice(price.per_gib));
  }
  add("--manifest-dir", fmt::format("{}/manifests", kRunFolder));
  if (plan.request.python) add("--python", kPythonFolder);
  if (plan.ends_by_itself) {
    add("--exit-file", kExitFile);
    if (plan.shares_processes) args.push_back("--shared-processes");
    if (plan.ends_at_once) add("--exit-after", "0");
  }
  return args;
}

Json FromField(std::string_view name, std::string_view path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
}

Json EnvironmentOf(const Identity& identity, const InjectionSettings& settings) {
  Json environment = Json::array();
  environment.push_back(identity.owner.empty()
                            ? FromField("OPTCACHE_OWNER", "metadata.uid")
                            : Json{{"name", "OPTCACHE_OWNER"}, {"value", Literal(identity.owner)}});
  environment.push_back(
      {{"name", "OPTCACHE_INCARNATION"}, {"value", std::to_string(identity.incarnation)}});
  environment.push_back(FromField("POD_NAME", "metadata.name"));
  environment.push_back(FromField("POD_NAMESPACE", "metadata.namespace"));
  for (const Json& variable : settings.source_variables)
    environment.push_back(variable);
  return environment;
}

Json ReadOnlyMount(std::string_view volume, std::string_view folder) {
  return {{"name", volume}, {"mountPath", folder}, {"readOnly", true}};
}

std::string SecretVolume(std::size_t number) {
  return fmt::format("optcache-keys-{}", number);
}

Json ProjectedToken(const char* audience, const char* path) {
  return {{"serviceAccountToken",
           {{"audience", audience}, {"expirationSeconds", kTokenSeconds}, {"path", path}}}};
}

void AddSecretMounts(const std::vector<ChosenDataset>& datasets, Json& mounts) {
  for (std::size_t i = 0; i < datasets.size(); ++i) {
    if (!datasets[i].secret.empty())
      mounts.push_back(ReadOnlyMount(SecretVolume(i), SecretFolder(*datasets[i].facts)));
  }
}

void AddClaimMounts(const std::vector<ChosenDataset>& datasets, Json& mounts) {
  for (const ChosenDataset& dataset : datasets) {
    if (!dataset.claim.empty())
      mounts.push_back(ReadOnlyMount(dataset.claim_volume, ClaimFolder(*dataset.facts)));
  }
}

Json MountsOf(const SidecarPlan& plan) {
  Json mounts = Json::array();
  mounts.push_back({{"name", kRunVolume}, {"mountPath", kRunFolder}});
  mounts.push_back(ReadOnlyMount(kTokenVolume, kTokenFolder));
  mounts.push_back(ReadOnlyMount(kCaVolume, kCaFolder));
  AddSecretMounts(plan.datasets, mounts);
  AddClaimMounts(plan.datasets, mounts);
  return mounts;
}

bool UsesWebIdentity(const SidecarPlan& plan) {
  return std::ranges::any_of(plan.datasets, &ChosenDataset::web_identity);
}

Json ResourcesOf(const SidecarPlan& plan) {
  const std::string memory =
      plan.request.memory.empty()
          ? MebibytesOf(MemoryFor(plan.request.shared_bytes(), plan.datasets))
          : plan.request.memory;
  const std::string storage =
      plan.request.storage.empty() ? MebibytesOf(StorageFor(plan.datasets)) : plan.request.storage;
  Json limits = {{"cpu", plan.request.cpu}, {"memory", memory}};
  Json requests = limits;
  requests["ephemeral-storage"] = storage;
  if (plan.limits_storage) limits["ephemeral-storage"] = storage;
  return {{"requests", requests}, {"limits", limits}};
}

}  // namespace

ByteCount OverflowFor(ByteCount largest_sample) {
  return std::max(kDefaultOverflow, 2 * largest_sample);
}

ByteCount MemoryFor(ByteCount shared, const std::vector<ChosenDataset>& datasets) {
  return shared + OverflowFor(LargestOf(datasets)) + SamplesOf(datasets) * kBytesPerSample +
         kProgramBytes;
}

ByteCount StorageFor(const std::vector<ChosenDataset>& datasets) {
  return kCopiesOfManifest * SamplesOf(datasets) * kBytesPerSample + kFilesBytes;
}

Json SecurityContextFor(const Json& pod, const Json& client_container) {
  Json context = {{"allowPrivilegeEscalation", false},
                  {"capabilities", {{"drop", {"ALL"}}}},
                  {"readOnlyRootFilesystem", true},
                  {"runAsNonRoot", true},
                  {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  const Json& of_pod = Member(Member(pod, "spec"), "securityContext");
  const Json& of_client = Member(client_container, "securityContext");
  const Json& pod_user = Member(of_pod, "runAsUser");
  const Json& client_user = Member(of_client, "runAsUser");
  if (client_user.is_number() && client_user != 0) {
    context["runAsUser"] = client_user;
    if (const Json& group = Member(of_client, "runAsGroup"); group.is_number())
      context["runAsGroup"] = group;
  } else if (pod_user == 0) {
    context["runAsUser"] = kSidecarUser;
  }
  return context;
}

Json FallbackMountsOf(const SidecarPlan& plan) {
  Json mounts = Json::array();
  AddClaimMounts(plan.datasets, mounts);
  if (!plan.request.fallback_keys) return mounts;
  AddSecretMounts(plan.datasets, mounts);
  if (UsesWebIdentity(plan)) mounts.push_back(ReadOnlyMount(kIdentityVolume, kIdentityFolder));
  return mounts;
}

Json FallbackMountsIn(const Json& spec, const InjectionRequest& request) {
  Json mounts = Json::array();
  for (const Json& mount : Items(*FindSidecar(spec), "volumeMounts")) {
    const std::string path = TextIn(mount, "mountPath");
    const bool is_key = path.starts_with(std::string(kKeysFolder) + "/");
    if (path.starts_with(kClaimsFolder) || (request.fallback_keys && is_key))
      mounts.push_back(mount);
  }
  if (request.fallback_keys && FindNamed(Items(spec, "volumes"), kIdentityVolume) != nullptr)
    mounts.push_back(ReadOnlyMount(kIdentityVolume, kIdentityFolder));
  return mounts;
}

Json BuildContainer(const SidecarPlan& plan, const InjectionSettings& settings) {
  Json container = {{"name", kSidecarName},
                    {"image", settings.sidecar_image},
                    {"imagePullPolicy", settings.image_pull_policy},
                    {"command", {"optcache-sidecar"}},
                    {"args", ArgumentsOf(plan, settings)},
                    {"env", EnvironmentOf(plan.identity, settings)},
                    {"volumeMounts", MountsOf(plan)},
                    {"resources", ResourcesOf(plan)},
                    {"securityContext", plan.security_context},
                    {"terminationMessagePolicy", "FallbackToLogsOnError"}};
  if (!plan.host_network) {
    container["ports"] = Json::array(
        {{{"name", "optcache-pages"}, {"containerPort", kPagesPort}, {"protocol", "TCP"}}});
  }
  if (plan.native) {
    container["restartPolicy"] = "Always";
    // The socket listens, no more: neither node nor manifest nor operator holds the pod.
    container["startupProbe"] = {{"exec", {{"command", {"optcache-sidecar", "--probe", kSocket}}}},
                                 {"periodSeconds", 1},
                                 {"timeoutSeconds", 5},
                                 {"failureThreshold", 120}};
  }
  if (plan.shares_processes) {
    // The containers after it start when it would see one that fails at once.
    container["lifecycle"] = {
        {"postStart", {{"exec", {{"command", {"optcache-sidecar", "--await-watch", kExitFile}}}}}}};
  }
  return container;
}

std::vector<Json> BuildVolumes(const SidecarPlan& plan) {
  // As much as it can come to: Kubernetes ends a pod that has more.
  const ByteCount most = plan.datasets.size() * kCopiesOfManifest * kManifestBytesMax + kFilesBytes;
  Json tokens = Json::array({ProjectedToken("optcache", "token")});
  if (UsesWebIdentity(plan)) tokens.push_back(ProjectedToken(kStsAudience, kStsTokenFile));
  std::vector<Json> volumes = {
      {{"name", kRunVolume}, {"emptyDir", {{"sizeLimit", MebibytesOf(most)}}}},
      {{"name", kTokenVolume}, {"projected", {{"sources", std::move(tokens)}}}},
      // Optional: a namespace whose ConfigMap is still to come holds no pod.
      {{"name", kCaVolume}, {"configMap", {{"name", "optcache-ca"}, {"optional", true}}}}};
  for (std::size_t i = 0; i < plan.datasets.size(); ++i) {
    const ChosenDataset& dataset = plan.datasets[i];
    if (!dataset.secret.empty()) {
      volumes.push_back({{"name", SecretVolume(i)},
                         {"secret", {{"secretName", dataset.secret}, {"optional", true}}}});
    }
    if (dataset.adds_claim_volume) {
      volumes.push_back({{"name", dataset.claim_volume},
                         {"persistentVolumeClaim", {{"claimName", dataset.claim}}}});
    }
  }
  if (plan.request.fallback_keys && UsesWebIdentity(plan)) {
    Json token = Json::array({ProjectedToken(kStsAudience, kStsTokenFile)});
    volumes.push_back({{"name", kIdentityVolume}, {"projected", {{"sources", std::move(token)}}}});
  }
  return volumes;
}

const Json* FindSidecar(const Json& spec) {
  const Json* const native = FindNamed(Items(spec, "initContainers"), kSidecarName);
  return native != nullptr ? native : FindNamed(Items(spec, "containers"), kSidecarName);
}

}  // namespace optcache::webhook
