#include "kube/internal/bearer_token.h"

#include "base/files.h"

namespace optcache::kube {

Result<std::string> BearerToken::Get(MonotonicTime now) {
  if (path_.empty() || (read_at_ && now - *read_at_ < max_age_)) return token_;
  auto token = ReadToken(path_);
  if (token) {
    token_ = *std::move(token);
    read_at_ = now;
  } else if (token_.empty()) {
    return Error(std::move(token).error().WithContext("token of the ServiceAccount"));
  }
  return token_;
}

}  // namespace optcache::kube
