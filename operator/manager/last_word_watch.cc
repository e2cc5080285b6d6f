#include "operator/manager/last_word_watch.h"

#include <utility>

#include <fmt/format.h>

#include "base/time_text.h"
#include "base/utf8.h"
#include "operator/manager/injection_watch.h"
#include "operator/manager/watches.h"

namespace optcache::manager {
namespace {

// Each leader tells of a pod once. Of those that ended earlier the leaders before have told.
constexpr double kEndedWithinSeconds = 3600;
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

kube::EventText EventOf(const std::string& pod, const kube::Json& said) {
  const std::string message = kube::TextAt(said, "/message");
  if (kube::TextAt(said, "/about") == "saved") {
    return {.type = kube::EventType::kNormal,
            .reason = "Saved",
            .action = "Train",
            .note = fmt::format("pod {}: {}", pod, message)};
  }
  const bool done = kube::TextAt(said, "/state") == "done";
  return {.type = done ? kube::EventType::kNormal : kube::EventType::kWarning,
          .reason = done ? "HeadspaceMeasured" : "HeadspaceNotMeasured",
          .action = "Measure",
          .note = fmt::format("pod {}: {} What it trained is not for use", pod, message)};
}

}  // namespace

kube::Json LastWordOf(const kube::Json& pod) {
  const kube::Json* const sidecar = StatusOfSidecar(pod);
  if (sidecar == nullptr) return nullptr;
  const std::string text = kube::TextAt(*sidecar, "/state/terminated/message");
  const kube::Json said = kube::Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool marked = kube::AnnotationOf(pod, kResultsAnnotation) == "not-for-use";
  const std::string about = marked ? "headspace" : "saved";
  const kube::Json& word = kube::Find(said, "/" + about);
  const std::string message = kube::TextAt(word, "/message");
  if (message.empty()) return nullptr;
  return {{"about", about},
          {"state", kube::TextAt(word, "/state")},
          {"message", CutText(message, kSentenceMax)},
          {"at", kube::TextAt(*sidecar, "/state/terminated/finishedAt")}};
}

LastWordWatch::LastWordWatch(const Clock& clock, kube::Informer& pods) : clock_(clock) {
  pods.OnChange([this](const kube::ObjectChange& change) { OnChange(change); });
}

void LastWordWatch::Lead(kube::EventRecorder& events) {
  events_ = &events;
  for (auto& [key, pod] : ended_)
    Tell(key.name, pod);
}

void LastWordWatch::OnChange(const kube::ObjectChange& change) {
  if (change.after == nullptr) {
    ended_.erase(change.key);
    return;
  }
  const kube::Json& said = kube::Find(*change.after, kLastWord);
  if (!said.is_object()) return;
  Pod& pod = ended_[change.key];
  if (const std::string uid = kube::UidOf(*change.after); pod.uid != uid)
    pod = {.uid = uid, .owner = OwnerOf(*change.after), .said = said};
  Tell(change.key.name, pod);
}

void LastWordWatch::Tell(const std::string& name, Pod& pod) {
  if (events_ == nullptr || std::exchange(pod.told, true)) return;
  const double ended = ParseTime(kube::TextAt(pod.said, "/at")).value_or(0);
  if (clock_.UnixSeconds() - ended >= kEndedWithinSeconds) return;
  events_->Record(pod.owner, EventOf(name, pod.said));
}

}  // namespace optcache::manager
