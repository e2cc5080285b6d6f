#include "kube/fenced_client.h"

#include <utility>

namespace optcache::kube {

void FencedClient::Call(ApiRequest request, ObjectCallback callback) {
  if (IsWrite(request.verb)) request.permit = permit_;
  client_.Call(std::move(request), std::move(callback));
}

std::unique_ptr<WatchHandle> FencedClient::Watch(WatchRequest request, WatchCallbacks callbacks) {
  return client_.Watch(std::move(request), std::move(callbacks));
}

}  // namespace optcache::kube
