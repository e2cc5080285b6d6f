#include "operator/webhook/server.h"

#include <string>
#include <utility>

#include "base/log.h"
#include "operator/webhook/json_access.h"
#include "operator/webhook/review.h"

namespace optcache::webhook {
namespace {

constexpr double kBounds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005,
                              0.01,   0.025,   0.05,   0.1,   0.25,   1};

void LogAdmission(const Review& review, const Injection& injection) {
  if (injection.outcome == Outcome::kSkipped && injection.warnings.empty()) return;
  const bool injected = injection.outcome == Outcome::kInjected;
  Log(injected ? LogLevel::kInfo : LogLevel::kWarning,
      std::string("pod ").append(OutcomeName(injection.outcome)),
      {{"namespace", review.name_space},
       {"pod", review.name},
       {"reason", ReasonName(injection.reason)},
       {"message", injection.message}});
}

}  // namespace

net::HttpServerOptions WebhookHttpOptions() {
  return {.label = "webhook",
          .max_body_bytes = kMaxReviewBytes,
          .max_connections = 512,
          .request_deadline = std::chrono::seconds(5),
          .write_deadline = std::chrono::seconds(5),
          .idle_deadline = std::chrono::minutes(2),
          .response_deadline = std::chrono::seconds(5)};
}

Webhook::Webhook(const Clock& clock, InjectionSettings settings, const DatasetView& datasets)
    : clock_(clock), settings_(std::move(settings)), datasets_(datasets), seconds_(kBounds) {}

net::HttpHandler Webhook::Handler() {
  return [this](const net::HttpRequest& request, const net::HttpResponder& respond) {
    const MonotonicTime begin = clock_.Now();
    net::HttpResponse response = Answer(request);
    seconds_.Observe(ToSeconds(clock_.Now() - begin));
    respond(std::move(response));
  };
}

net::HttpResponse Webhook::Answer(const net::HttpRequest& request) {
  if (request.path() != "/mutate") return net::HttpResponse::Text(404, "there is /mutate alone\n");
  if (request.method != "POST") return net::HttpResponse::Text(405, "POST an AdmissionReview\n");
  if (const Status status = ready(); !status.ok()) {
    ++refused_["not_ready"];
    return net::HttpResponse::Text(503, status.message() + "\n");
  }
  const Result<Review> review = ParseReview(request.body);
  if (!review) {
    ++refused_["bad_request"];
    if (const auto not_logged = bad_request_log_.Pass(clock_.Now())) {
      Log(LogLevel::kWarning, "admission review refused",
          {{"why", review.error().message()}, {"not_logged", *not_logged}});
    }
    return net::HttpResponse::Text(400, review.error().message() + "\n");
  }
  const Injection injection = DecideReview(*review, datasets_, settings_);
  ++injections_[{injection.outcome, injection.reason}];
  LogAdmission(*review, injection);
  return net::HttpResponse::Json(200, WriteReview(*review, injection));
}

void Webhook::SetOldMachines(std::vector<OldMachine> machines) {
  if (machines.empty() != settings_.old_machines.empty()) {
    Log(LogLevel::kInfo,
        machines.empty() ? "sidecars are init containers: no machine is too old"
                         : "sidecars are ordinary containers where pods may run on old machines",
        {{"old_machines", machines.size()},
         {"first", machines.empty() ? std::string_view("-") : machines.front().name}});
  }
  settings_.old_machines = std::move(machines);
}

Status Webhook::ready() const {
  if (datasets_.synced()) return OkStatus();
  return {Code::kUnavailable, "the injector has not read the Datasets yet"};
}

void Webhook::VisitCounters(const CounterVisitor& visitor) const {
  const auto count = [&visitor](std::string_view result, std::string_view reason,
                                std::uint64_t value) {
    visitor(MetricKind::kCounter, "optcache_injection_total",
            {{"result", std::string(result)}, {"reason", std::string(reason)}},
            static_cast<double>(value));
  };
  for (const auto& [what, value] : injections_)
    count(OutcomeName(what.first), ReasonName(what.second), value);
  for (const auto& [reason, value] : refused_)
    count("failed", reason, value);
  visitor(MetricKind::kGauge, "optcache_machines_without_native_sidecars", {},
          static_cast<double>(settings_.old_machines.size()));
  seconds_.Visit(visitor, "optcache_webhook_request_duration_seconds", {});
}

}  // namespace optcache::webhook
