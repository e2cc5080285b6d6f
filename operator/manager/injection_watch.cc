#include "operator/manager/injection_watch.h"

#include <algorithm>
#include <utility>

#include "base/time_text.h"
#include "operator/manager/watches.h"

namespace optcache::manager {
namespace {

// Each leader tells of pods once. Of older ones the leaders before have told.
constexpr double kToldWithinSeconds = 3600;

bool KeepsOut(const kube::Json& expression, const std::string& ns) {
  return kube::TextAt(expression, "/key") == "kubernetes.io/metadata.name" &&
         kube::TextAt(expression, "/operator") == "NotIn" &&
         std::ranges::any_of(kube::Items(expression, "/values"),
                             [&](const kube::Json& value) { return value == ns; });
}

}  // namespace

bool IsUninjected(const kube::Json& pod) {
  const std::string phase = kube::TextAt(pod, "/status/phase");
  const bool ended = phase == "Succeeded" || phase == "Failed";
  const bool optional = kube::AnnotationOf(pod, kOptionalAnnotation) == "true";
  return !ended && !optional && !kube::IsBeingDeleted(pod) &&
         kube::LabelOf(pod, kInjectLabel) == "true" &&
         !kube::AnnotationOf(pod, kInjectedAnnotation) && !kube::BoolAt(pod, kHasSidecar);
}

bool LeavesAlone(const kube::Json& configuration, const std::string& ns) {
  const kube::Json& webhooks = kube::Items(configuration, "/webhooks");
  return !webhooks.empty() && std::ranges::all_of(webhooks, [&](const kube::Json& webhook) {
    const kube::Json& rules = kube::Items(webhook, "/namespaceSelector/matchExpressions");
    return std::ranges::any_of(rules, [&](const kube::Json& rule) { return KeepsOut(rule, ns); });
  });
}

kube::ObjectReference OwnerOf(const kube::Json& pod) {
  const auto owner = kube::ControllerOf(pod);
  if (!owner) return kube::ReferenceTo(kube::kPods, pod);
  return {.api_version = owner->api_version,
          .kind = owner->kind,
          .ns = kube::KeyOf(pod).ns,
          .name = owner->name,
          .uid = owner->uid};
}

InjectionWatch::InjectionWatch(const Clock& clock, kube::Informer& pods, kube::Informer& injectors)
    : clock_(clock), injectors_(injectors) {
  pods.OnChange([this](const kube::ObjectChange& change) { OnChange(change); });
  injectors.OnSynced([this] { TellAll(); });
}

void InjectionWatch::Lead(kube::EventRecorder& events) {
  events_ = &events;
  TellAll();
}

void InjectionWatch::OnChange(const kube::ObjectChange& change) {
  if (change.after == nullptr || !IsUninjected(*change.after)) {
    uninjected_.erase(change.key);
    return;
  }
  Pod& pod = uninjected_[change.key];
  if (const std::string uid = kube::UidOf(*change.after); pod.uid != uid) {
    const std::string created = kube::TextAt(*change.after, "/metadata/creationTimestamp");
    pod = {
        .uid = uid, .owner = OwnerOf(*change.after), .created_at = ParseTime(created).value_or(0)};
  }
  Tell(change.key.ns, pod);
}

void InjectionWatch::TellAll() {
  for (auto& [key, pod] : uninjected_)
    Tell(key.ns, pod);
}

void InjectionWatch::Tell(const std::string& ns, Pod& pod) {
  if (events_ == nullptr || !injectors_.synced() || std::exchange(pod.settled, true)) return;
  if (IsLeftAlone(ns) || clock_.UnixSeconds() - pod.created_at >= kToldWithinSeconds) return;
  events_->Record(pod.owner,
                  {.type = kube::EventType::kWarning,
                   .reason = "NotInjected",
                   .action = "Inject",
                   .note = "a pod was created without its sidecar, as the API server did not reach "
                           "the injector. It has no cache, and a script that needs one fails. "
                           "Delete it to have it created again"});
}

bool InjectionWatch::IsLeftAlone(const std::string& ns) const {
  const auto configurations = injectors_.cache().List();
  return !configurations.empty() && LeavesAlone(*configurations.front(), ns);
}

void InjectionWatch::VisitCounters(const CounterVisitor& visitor) const {
  const auto missed = std::ranges::count_if(
      uninjected_, [this](const auto& pod) { return !IsLeftAlone(pod.first.ns); });
  visitor(MetricKind::kGauge, "optcache_uninjected_pods", {}, static_cast<double>(missed));
}

}  // namespace optcache::manager
