#include "operator/manager/injection_watch.h"

#include "kube/time_text.h"
#include "operator/manager/watches.h"

namespace optcache::manager {
namespace {

// A pod that is older was there before this leader, and has been told of by the one before.
constexpr double kToldWithinSeconds = 120;

}  // namespace

bool IsUninjected(const kube::Json& pod) {
  const std::string phase = kube::TextAt(pod, "/status/phase");
  const bool ended = phase == "Succeeded" || phase == "Failed";
  const bool optional = kube::AnnotationOf(pod, kOptionalAnnotation) == "true";
  return !ended && !optional && !kube::IsBeingDeleted(pod) &&
         kube::LabelOf(pod, kInjectLabel) == "true" &&
         !kube::AnnotationOf(pod, kInjectedAnnotation);
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

InjectionWatch::InjectionWatch(const Clock& clock, kube::Informer& pods) : clock_(clock) {
  pods.OnChange([this](const kube::ObjectChange& change) { OnChange(change); });
}

void InjectionWatch::OnChange(const kube::ObjectChange& change) {
  uninjected_.erase(change.key);
  if (change.after == nullptr || !IsUninjected(*change.after)) return;
  uninjected_.insert(change.key);
  const auto created =
      kube::ParseTime(kube::TextAt(*change.after, "/metadata/creationTimestamp")).value_or(0);
  const bool is_new =
      change.before == nullptr && clock_.UnixSeconds() - created < kToldWithinSeconds;
  if (events_ == nullptr || !is_new) return;
  events_->Record(OwnerOf(*change.after),
                  {.type = kube::EventType::kWarning,
                   .reason = "NotInjected",
                   .action = "Inject",
                   .note = "a pod was created without its sidecar, as the API server did not reach "
                           "the injector: it trains without the cache. Delete it to have it "
                           "created again"});
}

void InjectionWatch::VisitCounters(const CounterVisitor& visitor) const {
  visitor(MetricKind::kGauge, "optcache_uninjected_pods", {},
          static_cast<double>(uninjected_.size()));
}

}  // namespace optcache::manager
