#include "net/service_pages.h"

#include <utility>

namespace optcache::net {

HttpResponse Answer(const ServicePages& pages, std::string_view path) {
  if (path == "/metrics") return HttpResponse::Text(200, pages.metrics());
  if (path == "/healthz") return HttpResponse::Text(200, "ok\n");
  if (path != "/readyz") return HttpResponse::Text(404, "try /metrics, /healthz or /readyz\n");
  const Status ready = pages.ready();
  return ready.ok() ? HttpResponse::Text(200, "ok\n")
                    : HttpResponse::Text(503, ready.message() + "\n");
}

HttpHandler Serve(ServicePages pages) {
  return [pages = std::move(pages)](const HttpRequest& request, const HttpResponder& respond) {
    respond(Answer(pages, request.path()));
  };
}

}  // namespace optcache::net
