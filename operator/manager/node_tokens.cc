#include "operator/manager/node_tokens.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace optcache::manager {
namespace {

constexpr const char* kPodNameField = "authentication.kubernetes.io/pod-name";

}  // namespace

Result<std::string> NodePodOf(const kube::TokenReview& review, const OperatorOptions& options) {
  if (!review.authenticated) {
    return Error(Code::kPermissionDenied,
                 "the token is not valid" + (review.error.empty() ? "" : ": " + review.error));
  }
  if (std::ranges::find(review.audiences, kAudience) == review.audiences.end()) {
    return Error(Code::kPermissionDenied,
                 fmt::format("the token is not for the audience {}", kAudience));
  }
  const std::string wanted =
      fmt::format("system:serviceaccount:{}:{}-node", options.system_namespace, options.name);
  if (review.username != wanted) {
    return Error(Code::kPermissionDenied,
                 fmt::format("the token is that of {}, not of {}", review.username, wanted));
  }
  const auto pod = review.extra.find(kPodNameField);
  if (pod == review.extra.end() || pod->second.size() != 1 || pod->second.front().empty()) {
    return Error(Code::kPermissionDenied, "the token is bound to no pod");
  }
  return pod->second.front();
}

void ReviewNodeToken(kube::Client& client, const OperatorOptions& options, const std::string& token,
                     std::function<void(Result<std::string>)> answer) {
  client.ReviewToken(
      token, {kAudience},
      [options, answer = std::move(answer)](const kube::ApiResult<kube::TokenReview>& review) {
        if (review) return answer(NodePodOf(*review, options));
        // Not the node's fault: it asks again.
        answer(Error(Code::kUnavailable, "the token could not be reviewed: " +
                                             std::string(review.error().status.message())));
      });
}

}  // namespace optcache::manager
