#pragma once

// Hosts the coordinator on HTTP: control API, /metrics, /healthz.

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "control/control_service.h"
#include "metrics/metrics_page.h"
#include "net/event_loop.h"
#include "net/http_server.h"

namespace optcache::control {

// Used on the loop's thread only.
class ControlServer {
 public:
  // kConflict: the port is in use.
  static Result<std::unique_ptr<ControlServer>> Start(net::EventLoop& loop, const Clock& clock,
                                                      std::uint16_t port);

  ControlService& service() { return service_; }
  std::string url() const;

 private:
  ControlServer(net::EventLoop& loop, const Clock& clock);
  void Handle(const net::HttpRequest& request, const net::HttpResponder& responder);
  void ArmTick();

  net::EventLoop& loop_;
  ControlService service_;
  metrics::MetricsPage page_;
  std::unique_ptr<net::HttpServer> server_;
  net::Timer tick_;
};

}  // namespace optcache::control
