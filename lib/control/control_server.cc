#include "control/control_server.h"

#include <utility>

#include <fmt/format.h>

namespace optcache::control {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(50);
constexpr std::size_t kMaxConnections = 16384;  // two a node: its poll and its report

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::Start(net::EventLoop& loop,
                                                            const Clock& clock,
                                                            std::uint16_t port) {
  std::unique_ptr<ControlServer> self(new ControlServer(loop, clock));
  const net::HttpServerOptions options{.label = "control",
                                       .max_body_bytes = coordination::kMaxInventoryBytes,
                                       .max_connections = kMaxConnections};
  auto server = net::ListenHttp(
      loop, fmt::format("127.0.0.1:{}", port), options,
      [raw = self.get()](const net::HttpRequest& request, const net::HttpResponder& responder) {
        raw->Handle(request, responder);
      });
  if (!server) return Error(std::move(server).error());
  self->server_ = *std::move(server);
  self->page_.Add(
      [raw = self.get()](const CounterVisitor& visit) { raw->server_->VisitCounters(visit); });
  self->ArmTick();
  return self;
}

ControlServer::ControlServer(net::EventLoop& loop, const Clock& clock)
    : loop_(loop), service_(clock, {}) {}

std::string ControlServer::url() const {
  return fmt::format("http://127.0.0.1:{}", server_->port());
}

void ControlServer::Handle(const net::HttpRequest& request, const net::HttpResponder& responder) {
  if (request.path() == "/metrics") {
    return responder(net::HttpResponse::Text(200, page_.Render()));
  }
  service_.Handle(request,
                  [responder](net::HttpResponse response) { responder(std::move(response)); });
}

void ControlServer::ArmTick() {
  tick_ = loop_.After(kTick, [this] {
    service_.Tick();
    ArmTick();
  });
}

}  // namespace optcache::control
