#include "operator/manager/headspace_watch.h"

#include <utility>

#include <fmt/format.h>

#include "base/utf8.h"
#include "kube/time_text.h"
#include "operator/manager/injection_watch.h"
#include "operator/manager/watches.h"

namespace optcache::manager {
namespace {

// Each leader tells of a pod once. Of those that ended earlier the leaders before have told.
constexpr double kMeasuredWithinSeconds = 3600;
// Of the sentence: Kubernetes takes 1024 bytes of a note.
constexpr std::size_t kSentenceMax = 600;
constexpr const char* kSidecar = "optcache-sidecar";

const kube::Json* StatusOfSidecar(const kube::Json& pod) {
  for (const char* list : {"/status/initContainerStatuses", "/status/containerStatuses"}) {
    for (const kube::Json& container : kube::Items(pod, list)) {
      if (kube::TextAt(container, "/name") == kSidecar) return &container;
    }
  }
  return nullptr;
}

}  // namespace

kube::Json HeadspaceOf(const kube::Json& pod) {
  if (kube::AnnotationOf(pod, kResultsAnnotation) != "not-for-use") return nullptr;
  const kube::Json* const sidecar = StatusOfSidecar(pod);
  if (sidecar == nullptr) return nullptr;
  const std::string text = kube::TextAt(*sidecar, "/state/terminated/message");
  const kube::Json said = kube::Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const std::string message = kube::TextAt(said, "/headspace/message");
  if (message.empty()) return nullptr;
  return {{"state", kube::TextAt(said, "/headspace/state")},
          {"message", CutText(message, kSentenceMax)},
          {"at", kube::TextAt(*sidecar, "/state/terminated/finishedAt")}};
}

HeadspaceWatch::HeadspaceWatch(const Clock& clock, kube::Informer& pods) : clock_(clock) {
  pods.OnChange([this](const kube::ObjectChange& change) { OnChange(change); });
}

void HeadspaceWatch::Lead(kube::EventRecorder& events) {
  events_ = &events;
  for (auto& [key, pod] : measured_)
    Tell(key.name, pod);
}

void HeadspaceWatch::OnChange(const kube::ObjectChange& change) {
  if (change.after == nullptr) {
    measured_.erase(change.key);
    return;
  }
  const kube::Json& said = kube::Find(*change.after, kHeadspaceSaid);
  if (!said.is_object()) return;
  Pod& pod = measured_[change.key];
  if (const std::string uid = kube::UidOf(*change.after); pod.uid != uid)
    pod = {.uid = uid, .owner = OwnerOf(*change.after), .said = said};
  Tell(change.key.name, pod);
}

void HeadspaceWatch::Tell(const std::string& name, Pod& pod) {
  if (events_ == nullptr || std::exchange(pod.told, true)) return;
  const double ended = kube::ParseTime(kube::TextAt(pod.said, "/at")).value_or(0);
  if (clock_.UnixSeconds() - ended >= kMeasuredWithinSeconds) return;
  const bool done = kube::TextAt(pod.said, "/state") == "done";
  events_->Record(pod.owner, {.type = done ? kube::EventType::kNormal : kube::EventType::kWarning,
                              .reason = done ? "HeadspaceMeasured" : "HeadspaceNotMeasured",
                              .action = "Measure",
                              .note = fmt::format("pod {}: {} What it trained is not for use", name,
                                                  kube::TextAt(pod.said, "/message"))});
}

}  // namespace optcache::manager
