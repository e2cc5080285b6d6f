#pragma once

// The pages that every service has beside its work: /metrics, /healthz and /readyz.

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "net/http_server.h"

namespace optcache::net {

struct ServicePages {
  std::function<std::string()> metrics;  // the text of a scrape
  std::function<Status()> ready;         // an error says what it waits for
};

// 200, 503 while not ready, and 404 for every other path.
HttpResponse Answer(const ServicePages& pages, std::string_view path);

// A handler of these pages alone. What they refer to outlives it.
HttpHandler Serve(ServicePages pages);

}  // namespace optcache::net
