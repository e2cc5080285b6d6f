#pragma once

// The operator as a whole: what every replica does, and the leadership that one of them has.

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "control/control_gate.h"
#include "kube/api_client.h"
#include "kube/leader_election.h"
#include "metrics/metrics_page.h"
#include "net/event_loop.h"
#include "net/http_server.h"
#include "net/tls.h"
#include "operator/manager/certificate_keeper.h"
#include "operator/manager/dataset_directory.h"
#include "operator/manager/injection_watch.h"
#include "operator/manager/last_word_watch.h"
#include "operator/manager/leadership.h"
#include "operator/manager/options.h"
#include "operator/manager/watches.h"
#include "operator/webhook/server.h"

namespace optcache::manager {

// Where other replicas reach the holder of the Lease: "POD_NAME_POD_IP" to
// "https://POD_IP:8443". Empty for what has no address in it.
std::string UrlOfLeader(const std::string& identity, std::uint16_t control_port);

// Used on the loop's thread only.
class Operator {
 public:
  // `on_end` is called once, with why, when this process must end by itself: it led, and was frozen
  // until another could. kConflict: a port is in use. `loop` and `clock` outlive it.
  static Result<std::unique_ptr<Operator>> Start(net::EventLoop& loop, const Clock& clock,
                                                 const kube::ApiAccess& access,
                                                 OperatorOptions options,
                                                 std::function<void(std::string why)> on_end);
  ~Operator();
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  // Says at once that it is not ready and gives the Lease back; serves for shutdown_delay, until
  // nobody sends anything here any more; lets requests in flight end, and calls back.
  void Stop(std::function<void()> stopped);

  std::uint16_t webhook_port() const { return webhook_server_->port(); }
  std::uint16_t control_port() const { return control_server_->port(); }
  std::uint16_t pages_port() const { return pages_server_->port(); }
  bool leads() const { return leadership_ != nullptr; }
  // An error says what it waits for.
  Status Ready();

 private:
  Operator(net::EventLoop& loop, const Clock& clock, const kube::ApiAccess& access,
           OperatorOptions options, std::function<void(std::string)> on_end);
  Status Listen();
  void StartWebhook();
  void OnStarted(std::uint64_t term);
  void OnStopped(kube::LeadershipEnd end, const std::string& why);
  void OnLeader(const std::string& identity);
  void AddPages();
  void StopServers();

  net::EventLoop& loop_;
  const Clock& clock_;
  const OperatorOptions options_;
  std::function<void(std::string)> on_end_;
  std::unique_ptr<kube::ApiClient> client_;
  std::unique_ptr<kube::ApiClient> election_client_;  // renewals wait for nothing else
  std::shared_ptr<net::TlsContext> webhook_tls_;      // shared with its server
  std::shared_ptr<net::TlsContext> control_tls_;
  Watches watches_;
  DatasetDirectory datasets_;
  CertificateKeeper certificates_;
  InjectionWatch injection_;
  LastWordWatch last_words_;
  control::ControlGate gate_;
  std::unique_ptr<webhook::Webhook> webhook_;  // once the machines are known
  net::HttpHandler webhook_handler_;
  metrics::MetricsPage page_;
  kube::LeaderElector elector_;
  std::unique_ptr<Leadership> leadership_;
  std::unique_ptr<net::HttpServer> webhook_server_;
  std::unique_ptr<net::HttpServer> control_server_;
  std::unique_ptr<net::HttpServer> pages_server_;
  bool stopping_ = false;
  int open_servers_ = 0;
  std::function<void()> stopped_;
  net::Timer shutdown_;
};

}  // namespace optcache::manager
