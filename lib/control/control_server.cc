#include "control/control_server.h"

#include <utility>

#include <fmt/format.h>

#include "net/address.h"
#include "net/service_pages.h"

namespace optcache::control {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(50);
constexpr std::size_t kMaxConnections = 16384;  // two a node: its poll and its report

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::Start(net::EventLoop& loop,
                                                            const Clock& clock,
                                                            const ControlServerOptions& options) {
  std::unique_ptr<ControlServer> self(new ControlServer(loop, clock));
  RETURN_IF_ERROR(self->ServeControl(options.address));
  self->tick_ = net::PeriodicTimer(loop, kTick, [&service = self->service_] { service.Tick(); });
  return self;
}

ControlServer::ControlServer(net::EventLoop& loop, const Clock& clock)
    : loop_(loop), service_(clock, {}) {}

Status ControlServer::ServePages(std::uint16_t port) {
  ASSIGN_OR_RETURN(pages_, net::ListenHttp(loop_, fmt::format("127.0.0.1:{}", port), {},
                                           net::Serve({.metrics = [this] { return page_.Render(); },
                                                       .ready = OkStatus})));
  page_.Add([this](const CounterVisitor& visit) { pages_->VisitCounters(visit); });
  return OkStatus();
}

Status ControlServer::ServeControl(const std::string& address) {
  const net::HttpServerOptions options{.label = "control",
                                       .max_body_bytes = coordination::kMaxInventoryBytes,
                                       .max_connections = kMaxConnections};
  ASSIGN_OR_RETURN(control_, net::ListenHttp(loop_, address, options,
                                             [this](const net::HttpRequest& request,
                                                    const net::HttpResponder& responder) {
                                               Handle(request, responder);
                                             }));
  page_.Add([this](const CounterVisitor& visit) { control_->VisitCounters(visit); });
  ASSIGN_OR_RETURN(net::Address bound, net::ParseAddress(address));
  bound.port = control_->port();
  url_ = (bound.is_unix() ? "" : "http://") + net::FormatAddress(bound);
  return OkStatus();
}

std::string ControlServer::metrics_url() const {
  return pages_ ? fmt::format("http://127.0.0.1:{}/metrics", pages_->port()) : "";
}

void ControlServer::Handle(const net::HttpRequest& request, const net::HttpResponder& responder) {
  if (request.path() == "/metrics") {
    return responder(net::HttpResponse::Text(200, page_.Render()));
  }
  service_.Handle(request,
                  [responder](net::HttpResponse response) { responder(std::move(response)); });
}

}  // namespace optcache::control
