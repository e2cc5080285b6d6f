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
#include "net/periodic_timer.h"

namespace optcache::control {

struct ControlServerOptions {
  // Of the control API and the pages. It asks nobody who they are: a Unix socket ("unix:/path"),
  // which the kernel keeps for this process's user, or TCP for everybody who reaches it.
  std::string address = "127.0.0.1:0";
};

// Used on the loop's thread only.
class ControlServer {
 public:
  // Errors as in net::ListenHttp: kConflict if another process listens at the address.
  static Result<std::unique_ptr<ControlServer>> Start(net::EventLoop& loop, const Clock& clock,
                                                      const ControlServerOptions& options);

  // The pages alone at a TCP port of 127.0.0.1, for everybody on this machine; 0: any. Call it
  // once. kConflict: the port is in use.
  Status ServePages(std::uint16_t port);

  ControlService& service() { return service_; }
  // Of the control API: "unix:/path" or "http://127.0.0.1:7450".
  const std::string& url() const { return url_; }
  // Of /metrics; empty: it has no port for pages.
  std::string metrics_url() const;

 private:
  ControlServer(net::EventLoop& loop, const Clock& clock);
  Status ServeControl(const std::string& address);
  void Handle(const net::HttpRequest& request, const net::HttpResponder& responder);

  net::EventLoop& loop_;
  ControlService service_;
  metrics::MetricsPage page_;
  std::unique_ptr<net::HttpServer> pages_;  // null: it has no port for them
  std::unique_ptr<net::HttpServer> control_;
  std::string url_;
  net::PeriodicTimer tick_;
};

}  // namespace optcache::control
