// Decides about one pod, and builds the patch when all checks have passed.
//
//   DecideInjection ─┬─ not selected, switched off, mirror, its own sidecar ─► skipped
//                    ├─ our sidecar is there ─► Complete: what containers lack
//                    └─► Inject ─► MakePlan ─► ClientsOf ─► checks ─► Wire, AddSidecar
//   Refusal ─► Answer ─► denied, or skipped with a warning where the cache is optional
//
// Checks come before the first operation of the patch, so a pod is changed as a whole or not at
// all. The API server may call twice for one pod; the second call finds the annotation and the
// volume, and adds to new containers what they lack. PodPatch applies each operation to its own
// copy, so later steps see what earlier ones added. A native sidecar is the first init container,
// so it starts before everything that reads through it.

#include "operator/webhook/inject.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "operator/webhook/affinity.h"
#include "operator/webhook/client_containers.h"
#include "operator/webhook/dataset_choice.h"
#include "operator/webhook/identity.h"
#include "operator/webhook/pod_patch.h"
#include "operator/webhook/request.h"
#include "operator/webhook/sidecar_spec.h"
#include "operator/webhook/unknown_annotations.h"
#include "sampler/pod_order.h"

namespace optcache::webhook {
namespace {

constexpr const char* kDefaultContainer = "kubectl.kubernetes.io/default-container";

// Same order as the enumerators.
constexpr auto kOutcomes = std::to_array<std::string_view>({"injected", "skipped", "denied"});
constexpr auto kReasons = std::to_array<std::string_view>(
    {"injected", "completed", "unchanged", "not_selected", "switched_off", "brought_its_own",
     "not_create", "invalid_annotation", "unknown_dataset", "not_permitted", "unreadable_source",
     "conflict", "unsupported_pod", "no_common_machine"});
static_assert(kReasons.size() == static_cast<std::size_t>(Reason::kNoCommonMachine) + 1);

const Json::json_pointer kMetadata("/metadata");
const Json::json_pointer kSpec("/spec");

std::unexpected<Refusal> Refuse(Reason reason, std::string message) {
  return std::unexpected(Refusal{.reason = reason, .message = std::move(message)});
}
std::unexpected<Refusal> Refuse(Reason reason, const Status& status) {
  return Refuse(reason, status.message());
}

Injection Skip(Reason reason) {
  return {.outcome = Outcome::kSkipped, .reason = reason};
}

// An optional cache holds no pod; but a text that cannot be understood is told at once.
Injection Answer(Refusal refusal, bool optional) {
  if (!optional || refusal.reason == Reason::kInvalidAnnotation) {
    return {.outcome = Outcome::kDenied,
            .reason = refusal.reason,
            .message = std::move(refusal.message)};
  }
  return {.outcome = Outcome::kSkipped,
          .reason = refusal.reason,
          .warnings = {"the pod runs without optcache: " + refusal.message}};
}

bool IsPod(const Json& pod) {
  const Json& spec = Member(pod, "spec");
  const auto all_objects = [&spec](const char* list) {
    return std::ranges::all_of(Items(spec, list),
                               [](const Json& item) { return item.is_object(); });
  };
  return Member(pod, "metadata").is_object() && spec.is_object() &&
         !Items(spec, "containers").empty() && all_objects("containers") &&
         all_objects("initContainers");
}

bool IsForWindows(const Json& spec) {
  return TextIn(Member(spec, "os"), "name") == "windows" ||
         TextIn(Member(spec, "nodeSelector"), "kubernetes.io/os") == "windows";
}

// Of a static pod: its machine has begun it already.
bool IsMirror(const Json& pod) {
  const Json& annotations = Member(Member(pod, "metadata"), "annotations");
  return annotations.is_object() && annotations.contains("kubernetes.io/config.mirror");
}

bool IsOurWork(const Json& pod) {
  const Json& annotations = Member(Member(pod, "metadata"), "annotations");
  return !TextIn(annotations, kInjectedAnnotation).empty() &&
         FindNamed(Items(Member(pod, "spec"), "volumes"), kRunVolume) != nullptr;
}

bool IsTrue(const Json& value) {
  return value.is_boolean() && value.get<bool>();
}

// Unless it says otherwise itself; with the machine's processes it cannot have its own.
bool MayShareProcesses(const Json& spec) {
  return !IsTrue(Member(spec, "hostPID")) && Member(spec, "shareProcessNamespace") != false;
}

bool LimitsStorage(const Json& spec) {
  return std::ranges::all_of(Items(spec, "containers"), [](const Json& container) {
    return Member(Member(container, "resources"), "limits").contains("ephemeral-storage");
  });
}

// Whose port the sidecar's pages would take.
std::string PortHolder(const Json& spec) {
  for (const char* list : {"containers", "initContainers"}) {
    for (const Json& container : Items(spec, list)) {
      for (const Json& port : Items(container, "ports")) {
        if (Member(port, "containerPort") == kPagesPort) return TextIn(container, "name");
      }
    }
  }
  return "";
}

Status CheckRoom(const Json& spec, const SidecarPlan& plan, const std::vector<Json>& volumes) {
  for (const Json& volume : volumes) {
    const auto name = volume["name"].get<std::string>();
    if (FindNamed(Items(spec, "volumes"), name) != nullptr) {
      return {Code::kConflict, fmt::format("the pod has a volume {} of its own: rename it", name)};
    }
  }
  const std::string holder = PortHolder(spec);
  if (plan.host_network || holder.empty()) return OkStatus();
  return {Code::kConflict, fmt::format("container {} has port {}, which the sidecar's pages need: "
                                       "give it another one",
                                       Quote(holder), kPagesPort)};
}

// Keys of its surroundings show only where it runs.
bool MayHaveKeys(const ChosenDataset& dataset) {
  return !dataset.secret.empty() || dataset.web_identity ||
         (dataset.ambient_keys && dataset.facts->url.starts_with("s3://"));
}

void WarnOfDatasets(const SidecarPlan& plan, std::vector<std::string>& warnings) {
  for (const ChosenDataset& dataset : plan.datasets) {
    std::ranges::copy(dataset.warnings, std::back_inserter(warnings));
    if (dataset.facts->indexed || !plan.request.memory.empty()) continue;
    warnings.push_back(fmt::format(
        "Dataset {} is not indexed yet: the sidecar's memory is for {} samples; if there are more, "
        "set the annotation optcache.io/resources",
        dataset.facts->QualifiedName(), kUnindexedSamples));
  }
  if (plan.request.fallback_keys && std::ranges::none_of(plan.datasets, MayHaveKeys)) {
    warnings.emplace_back(
        "annotation optcache.io/fallback-keys does nothing: no Dataset of the pod is read with "
        "keys");
  }
}

void WarnOfPod(const Json& spec, const SidecarPlan& plan, std::vector<std::string>& warnings) {
  const std::string dns = TextIn(spec, "dnsPolicy");
  if (plan.host_network ? dns != "ClusterFirstWithHostNet" : dns == "Default" || dns == "None") {
    warnings.push_back(fmt::format(
        "with dnsPolicy {}{} the sidecar may not find its node by name and reads from the store; "
        "{} finds it",
        dns.empty() ? "ClusterFirst" : dns, plan.host_network ? " and hostNetwork" : "",
        plan.host_network ? "ClusterFirstWithHostNet" : "ClusterFirst"));
  }
  if (plan.host_network)
    warnings.emplace_back("with hostNetwork the sidecar's metrics are not reachable from outside");
  if (!plan.request.headspace.empty()) {
    warnings.emplace_back(
        "headspace is measured in this pod: for some steps samples are replaced by others, and "
        "what it trains is not for use");
  }
  if (!plan.request.sampler.empty() && !plan.identity.index) {
    const auto order = sampler::ParsePodOrder(plan.request.sampler);
    if (order && order->recipe.world > order->ranks) {
      warnings.emplace_back(
          "nothing says which of its job's pods this is, so it is taken for the first: in a Job, "
          "set completionMode: Indexed");
    }
  }
  if (Member(spec, "resources").is_object()) {
    warnings.emplace_back("the pod's own spec.resources must have room for the sidecar's, too");
  }
}

// What an image sets cannot be seen, so not be added to either.
void WarnOfPythonPath(const std::vector<ClientContainer>& clients, const InjectionRequest& request,
                      std::vector<std::string>& warnings) {
  const bool replaces = std::ranges::any_of(clients, [](const ClientContainer& client) {
    return FindNamed(Items(*client.container, "env"), "PYTHONPATH") == nullptr;
  });
  if (!replaces || !request.python || request.python_is_said) return;
  warnings.emplace_back(
      "containers get a PYTHONPATH, which replaces that of their image or envFrom: if there is "
      "one, "
      "write it into the pod's env; annotation optcache.io/python: \"true\" says that there is "
      "none, \"false\" leaves PYTHONPATH alone");
}

// Requires what ParseRequest and ClientsOf say about containers before the sidecar.
Status CheckOrder(const std::vector<ClientContainer>& clients, bool native) {
  for (const ClientContainer& client : clients) {
    if (client.init && !native) {
      return {Code::kInvalidArgument,
              fmt::format("annotation optcache.io/containers names init container {}, which runs "
                          "before the sidecar in Kubernetes before 1.29",
                          Quote(client.name()))};
    }
  }
  return OkStatus();
}

// Adds the sidecar where it starts before everything that reads through it.
void AddSidecar(const SidecarPlan& plan, const InjectionSettings& settings,
                const std::vector<Json>& volumes, PodPatch& patch) {
  for (const Json& volume : volumes)
    patch.Append(kSpec, "volumes", volume);
  for (const std::string& name : settings.image_pull_secrets) {
    const Json& secrets = Items(Member(patch.object(), "spec"), "imagePullSecrets");
    if (FindNamed(secrets, name) == nullptr)
      patch.Append(kSpec, "imagePullSecrets", {{"name", name}});
  }
  const Json& containers = Items(Member(patch.object(), "spec"), "containers");
  const std::string first = TextIn(containers.front(), "name");
  patch.Prepend(kSpec, plan.native ? "initContainers" : "containers",
                BuildContainer(plan, settings));
  const auto annotations = kMetadata / "annotations";
  patch.Set(annotations, kInjectedAnnotation, settings.version);
  if (!plan.request.headspace.empty()) patch.Set(annotations, kResultsAnnotation, "not-for-use");
  const Json& present = Member(Member(patch.object(), "metadata"), "annotations");
  if (!plan.native && !present.contains(kDefaultContainer))
    patch.Set(annotations, kDefaultContainer, first);
}

// The pod was ours before another webhook added a container to it.
std::expected<Injection, Refusal> Complete(const Json& pod, std::string_view name_space) {
  const Result<InjectionRequest> request = ParseRequest(pod, name_space);
  if (!request) return Refuse(Reason::kInvalidAnnotation, request.error());
  const Result<std::vector<ClientContainer>> clients = ClientsOf(pod, *request);
  if (!clients) return Refuse(Reason::kInvalidAnnotation, clients.error());
  if (const Status status = CheckMounts(*clients); !status.ok())
    return Refuse(Reason::kConflict, status);
  const bool native = FindNamed(Items(pod["spec"], "initContainers"), kSidecarName) != nullptr;
  const Wiring wiring{.request = &*request,
                      .writable = !native,
                      .fallback_mounts = FallbackMountsIn(pod["spec"], *request)};
  Injection injection;
  PodPatch patch(pod);
  for (const ClientContainer& client : *clients)
    Wire(client, wiring, patch, injection.warnings);
  injection.patch = patch.operations();
  injection.outcome = injection.patch.empty() ? Outcome::kSkipped : Outcome::kInjected;
  injection.reason = injection.patch.empty() ? Reason::kUnchanged : Reason::kCompleted;
  return injection;
}

// Signatures are not checked there, so nobody but the pod may reach it; and its clients come and
// go, so that they do not say when the training has ended.
std::optional<Refusal> RefuseEndpoint(const SidecarPlan& plan) {
  if (!plan.request.s3_endpoint) return std::nullopt;
  if (plan.host_network) {
    return Refusal{.reason = Reason::kUnsupportedPod,
                   .message =
                       "annotation optcache.io/s3-endpoint with hostNetwork: every process "
                       "of the machine could read there; remove one of the two"};
  }
  if (plan.ends_by_itself && !plan.shares_processes) {
    return Refusal{.reason = Reason::kUnsupportedPod,
                   .message =
                       "annotation optcache.io/s3-endpoint before Kubernetes 1.29: the "
                       "sidecar must see when the other containers have ended; let the pod "
                       "have shareProcessNamespace: true"};
  }
  return std::nullopt;
}

std::expected<SidecarPlan, Refusal> MakePlan(const Json& pod, std::string_view name_space,
                                             const DatasetView& datasets,
                                             const InjectionSettings& settings) {
  Result<InjectionRequest> request = ParseRequest(pod, name_space);
  if (!request) return Refuse(Reason::kInvalidAnnotation, request.error());
  auto chosen = ChooseDatasets(pod, *request, name_space, datasets);
  if (!chosen) return std::unexpected(std::move(chosen).error());
  const Json& spec = pod["spec"];
  SidecarPlan plan{.request = *std::move(request), .datasets = *std::move(chosen)};
  plan.identity = IdentityOf(pod, plan.request);
  plan.native = MayBeNative(spec, settings);
  const std::string restart = TextIn(spec, "restartPolicy");
  plan.ends_by_itself = !plan.native && (restart == "Never" || restart == "OnFailure");
  plan.shares_processes = plan.ends_by_itself && MayShareProcesses(spec);
  plan.ends_at_once =
      plan.shares_processes && restart == "Never" && Items(spec, "containers").size() == 1;
  plan.host_network = IsTrue(Member(spec, "hostNetwork"));
  plan.limits_storage = LimitsStorage(spec);
  if (auto refusal = RefuseEndpoint(plan)) return std::unexpected(*std::move(refusal));
  const ByteCount memory = ParseQuantity(plan.request.memory).value_or(0);
  const ByteCount least = MemoryFor(plan.request.shared_bytes(), {});
  if (!plan.request.memory.empty() && memory < least) {
    return Refuse(Reason::kInvalidAnnotation,
                  fmt::format("annotation optcache.io/resources gives memory={}, but arena, "
                              "memory for computed samples and overflow alone need {}: give "
                              "more, or make one of the first smaller",
                              plan.request.memory, FormatBytes(least)));
  }
  return plan;
}

std::expected<Injection, Refusal> Inject(const Json& pod, std::string_view name_space,
                                         const DatasetView& datasets,
                                         const InjectionSettings& settings) {
  const Json& spec = pod["spec"];
  if (IsForWindows(spec))
    return Refuse(Reason::kUnsupportedPod, "the pod is for Windows, the sidecar is for Linux");
  auto plan = MakePlan(pod, name_space, datasets, settings);
  if (!plan) return std::unexpected(std::move(plan).error());
  const Result<std::vector<ClientContainer>> clients = ClientsOf(pod, plan->request);
  if (!clients) return Refuse(Reason::kInvalidAnnotation, clients.error());
  if (const Status status = CheckOrder(*clients, plan->native); !status.ok())
    return Refuse(Reason::kInvalidAnnotation, status);
  const std::vector<Json> volumes = BuildVolumes(*plan);
  if (const Status status = CheckRoom(spec, *plan, volumes); !status.ok())
    return Refuse(Reason::kConflict, status);
  if (const Status status = CheckMounts(*clients); !status.ok())
    return Refuse(Reason::kConflict, status);
  Result<Affinity> affinity = AddAffinity(pod, plan->datasets);
  if (!affinity) return Refuse(Reason::kNoCommonMachine, affinity.error());

  Injection injection{.outcome = Outcome::kInjected, .reason = Reason::kInjected};
  injection.warnings = std::move(affinity->warnings);
  WarnOfDatasets(*plan, injection.warnings);
  WarnOfPod(spec, *plan, injection.warnings);
  WarnOfPythonPath(*clients, plan->request, injection.warnings);
  plan->security_context = SecurityContextFor(pod, *clients->front().container);
  const Wiring wiring{.request = &plan->request,
                      .writable = !plan->native,
                      .fallback_mounts = FallbackMountsOf(*plan)};
  PodPatch patch(pod);
  for (const ClientContainer& client : *clients)
    Wire(client, wiring, patch, injection.warnings);
  if (!affinity->value.is_null()) patch.Set(kSpec, "affinity", std::move(affinity->value));
  if (plan->shares_processes && !IsTrue(Member(spec, "shareProcessNamespace")))
    patch.Set(kSpec, "shareProcessNamespace", true);
  AddSidecar(*plan, settings, volumes, patch);
  injection.patch = patch.operations();
  return injection;
}

}  // namespace

std::string_view OutcomeName(Outcome outcome) {
  return kOutcomes.at(static_cast<std::size_t>(outcome));
}

std::string_view ReasonName(Reason reason) {
  return kReasons.at(static_cast<std::size_t>(reason));
}

Injection DecideInjection(const Json& pod, std::string_view name_space, const DatasetView& datasets,
                          const InjectionSettings& settings) {
  const auto invalid = [](const Status& status) {
    return Answer({.reason = Reason::kInvalidAnnotation, .message = status.message()}, false);
  };
  const Result<Selection> selection = SelectionOf(pod);
  if (!selection) return invalid(selection.error());
  if (*selection == Selection::kNotSelected) return Skip(Reason::kNotSelected);
  if (*selection == Selection::kSwitchedOff) return Skip(Reason::kSwitchedOff);
  const Result<bool> optional = IsOptional(pod);
  if (!optional) return invalid(optional.error());
  if (!IsPod(pod))
    return Answer({.reason = Reason::kUnsupportedPod, .message = "this is no pod"}, false);
  if (IsMirror(pod)) return Skip(Reason::kUnsupportedPod);
  const bool present = FindSidecar(pod["spec"]) != nullptr;
  if (present && !IsOurWork(pod)) return Skip(Reason::kBroughtItsOwn);
  auto decided = present ? Complete(pod, name_space) : Inject(pod, name_space, datasets, settings);
  Injection injection =
      decided ? *std::move(decided) : Answer(std::move(decided).error(), *optional);
  // Once: the API server may ask again about what it has got.
  if (!present)
    std::ranges::move(WarnOfUnknownAnnotations(pod), std::back_inserter(injection.warnings));
  return injection;
}

}  // namespace optcache::webhook
