#pragma once

// The webhook over HTTP: POST /mutate, an AdmissionReview in and out. The operator listens with it
// on every replica, leading or not:
//
//   Webhook webhook(SystemClock(), settings, datasets);
//   net::HttpServerOptions options = WebhookHttpOptions();
//   options.tls = ...;
//   net::ListenHttp(loop, "*:9443", options, webhook.Handler());

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "base/histogram.h"
#include "base/log_limit.h"
#include "base/status.h"
#include "net/http_server.h"
#include "operator/webhook/inject.h"

namespace optcache::webhook {

// Limits for what API servers send: bodies of 3 MiB and somewhat more, answers at once.
net::HttpServerOptions WebhookHttpOptions();

// Used on the loop's thread only. It never waits: a review is answered within its own event.
class Webhook {
 public:
  // `clock` and `datasets` outlive it.
  Webhook(const Clock& clock, InjectionSettings settings, const DatasetView& datasets);

  // The webhook outlives the server that has the handler.
  net::HttpHandler Handler();
  // For pods from now on: InjectionSettings::old_machines.
  void SetOldMachines(std::vector<OldMachine> machines);

  // For readiness: kUnavailable until the Datasets are known.
  Status ready() const;

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  net::HttpResponse Answer(const net::HttpRequest& request);

  const Clock& clock_;
  InjectionSettings settings_;
  const DatasetView& datasets_;
  std::map<std::pair<Outcome, Reason>, std::uint64_t> injections_;
  std::map<std::string_view, std::uint64_t> refused_;  // by reason; the keys are literals
  LogLimit bad_request_log_;
  Histogram seconds_;
};

}  // namespace optcache::webhook
