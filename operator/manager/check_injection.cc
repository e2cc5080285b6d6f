#include "operator/manager/check_injection.h"

#include <utility>

#include "operator/manager/watches.h"
#include "operator/webhook/review.h"
#include "operator/webhook/sidecar_spec.h"

namespace optcache::manager {
namespace {

constexpr Duration kTryEvery = std::chrono::seconds(2);

}  // namespace

kube::Json BuildCheckPod(const std::string& ns) {
  kube::Json pod = kube::MakeObject(kube::kPods, {.ns = ns, .name = webhook::kCheckDataset});
  pod["metadata"]["labels"] = {{kInjectLabel, "true"}};
  pod["metadata"]["annotations"] = {{kDatasetAnnotation, webhook::kCheckDataset},
                                    {"optcache.io/arena", "16Mi"},
                                    {"optcache.io/python", "true"},
                                    {"optcache.io/resources", "cpu=1m"}};
  pod["spec"] = {
      {"restartPolicy", "Never"},
      {"securityContext",
       {{"runAsNonRoot", true},
        {"runAsUser", 65532},
        {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
      {"containers",
       kube::Json::array({{{"name", "check"},
                           {"image", "check"},
                           {"resources",
                            {{"requests", {{"cpu", "1m"}, {"memory", "1Mi"}}},
                             {"limits", {{"cpu", "1m"}, {"memory", "1Mi"}}}}},
                           {"securityContext",
                            {{"allowPrivilegeEscalation", false},
                             {"capabilities", {{"drop", kube::Json::array({"ALL"})}}}}}}})}};
  return pod;
}

Status ReadCheck(const kube::ApiResult<kube::Json>& answer) {
  if (answer) {
    if (webhook::FindSidecar(kube::Find(*answer, "/spec")) != nullptr) return OkStatus();
    return {Code::kUnavailable,
            "the pod was admitted without a sidecar: the API server does not reach the injector, "
            "or the namespace is excluded"};
  }
  const std::string message(answer.error().status.message());
  const bool again =
      answer.error().transient() || message.find("failed calling webhook") != std::string::npos;
  return {again ? Code::kUnavailable : answer.error().status.code(), message};
}

InjectionCheck::InjectionCheck(net::EventLoop& loop, const Clock& clock, kube::Client& client,
                               std::string ns, Duration timeout, std::function<void(Status)> done)
    : loop_(loop),
      clock_(clock),
      client_(client),
      ns_(std::move(ns)),
      deadline_(clock.Now() + timeout),
      done_(std::move(done)) {
  Try();
}

void InjectionCheck::Try() {
  client_.Call({.verb = kube::Verb::kCreate,
                .resource = kube::kPods,
                .key = {.ns = ns_, .name = ""},
                .query = {{"dryRun", "All"}},
                .body = kube::ToText(BuildCheckPod(ns_))},
               [this](const kube::ApiResult<kube::Json>& answer) {
                 Status status = ReadCheck(answer);
                 if (status.code() != Code::kUnavailable || clock_.Now() >= deadline_)
                   return done_(std::move(status));
                 again_ = loop_.After(kTryEvery, [this] { Try(); });
               });
}

}  // namespace optcache::manager
