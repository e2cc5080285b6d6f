#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kube/client.h"
#include "net/http_client.h"

namespace optcache::kube {

// A watch over an HTTP stream. `what` is for messages; `on_response` hears the HTTP status first.
std::unique_ptr<WatchHandle> StartApiWatch(net::HttpClient& http, net::HttpRequest request,
                                           std::string what, Duration idle_deadline,
                                           WatchCallbacks callbacks,
                                           std::function<void(int http_status)> on_response);

}  // namespace optcache::kube
