#pragma once

// Whether a token is that of a node's pod: asked of the API server.

#include <functional>
#include <string>

#include "base/result.h"
#include "kube/client.h"
#include "operator/manager/options.h"

namespace optcache::manager {

// The audience of tokens that are for optcache.
inline constexpr const char* kAudience = "optcache";

// What a review says of `token`: the name of the pod that it is bound to. kPermissionDenied: it is
// not that of a pod of NAME-node.
Result<std::string> NodePodOf(const kube::TokenReview& review, const OperatorOptions& options);

// Asks and answers once, later. `client` outlives the answer.
void ReviewNodeToken(kube::Client& client, const OperatorOptions& options, const std::string& token,
                     std::function<void(Result<std::string>)> answer);

}  // namespace optcache::manager
