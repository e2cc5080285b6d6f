// Decides who may ask the control API in a cluster, and whether this replica answers.
//
// The idea: only the leader has a service, and every replica has a gate. A node shows its
// certificate and is passed on, or sent to the leader. A node that has none yet sends its pod's
// token and a certificate request: the gate checks sizes and the number of reviews under way first,
// and only then asks the API server, because strangers may send anything.
//
// Invariants: a caller is answered once, unless the gate dies first. Leadership may end while a
// token is reviewed, so it is looked at again before signing. Reviews hold `self_`, whose pointer
// the destructor clears.

#include "control/control_gate.h"

#include <utility>

#include "base/log.h"
#include "control/error_response.h"

namespace optcache::control {
namespace {

constexpr std::string_view kCertificatesPath = "/v1/certificates";
constexpr std::string_view kBearer = "Bearer ";

// Empty: there is none that could be one.
std::string BearerToken(const net::HttpRequest& request) {
  const auto header = net::FindHeader(request.headers, "Authorization");
  if (!header || !header->starts_with(kBearer)) return {};
  const std::string_view token = header->substr(kBearer.size());
  return token.size() > kMaxTokenBytes ? std::string() : std::string(token);
}

}  // namespace

ControlGate::ControlGate(const Clock& clock, ControlGateOptions options)
    : clock_(clock), options_(std::move(options)), self_(std::make_shared<ControlGate*>(this)) {}

ControlGate::~ControlGate() {
  *self_ = nullptr;
}

void ControlGate::Lead(ControlService& service) {
  service_ = &service;
  leader_.clear();
}

void ControlGate::Follow(std::string url) {
  service_ = nullptr;
  leader_ = std::move(url);
}

std::string_view ControlGate::NameOf(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNoCertificate:
      return "no_certificate";
    case Refusal::kNoNode:
      return "no_node";
    case Refusal::kNoToken:
      return "no_token";
    case Refusal::kTokenRefused:
      return "token_refused";
    case Refusal::kInvalidRequest:
      return "invalid_request";
    case Refusal::kBusy:
      return "busy";
  }
  return "";
}

net::HttpResponse ControlGate::Refuse(Refusal refusal, const std::string& who, const Status& why) {
  const auto kind = static_cast<std::size_t>(refusal);
  ++refusals_.at(kind);
  if (const auto not_logged = refusal_logs_.at(kind).Pass(clock_.Now())) {
    Log(LogLevel::kWarning, "control request refused",
        {{"peer", who},
         {"reason", NameOf(refusal)},
         {"why", why.message()},
         {"not_logged", *not_logged}});
  }
  return ErrorResponse(why);
}

net::HttpResponse ControlGate::Elsewhere(const net::HttpRequest& request) const {
  if (leader_.empty()) {
    return ErrorResponse({Code::kUnavailable, "no replica of the operator leads now"});
  }
  return {.status = 307, .headers = {{"Location", leader_ + request.url}}, .body = {}};
}

void ControlGate::Handle(const net::HttpRequest& request, ControlService::Respond respond) {
  if (request.path() == kCertificatesPath) return OnCertificates(request, std::move(respond));
  const std::string& who = request.peer.address;
  if (request.peer.dns_names.empty()) {
    return respond(Refuse(Refusal::kNoCertificate, who,
                          {Code::kPermissionDenied,
                           "show a node's certificate; nodes get one from "
                           "POST /v1/certificates"}));
  }
  if (!request.peer.Is(kNodeDnsName)) {
    return respond(
        Refuse(Refusal::kNoNode, who,
               {Code::kPermissionDenied,
                "the certificate is for " + request.peer.dns_names.front() + ", not for a node"}));
  }
  if (service_ == nullptr) return respond(Elsewhere(request));
  service_->Handle(request, std::move(respond));
}

void ControlGate::OnCertificates(const net::HttpRequest& request, ControlService::Respond respond) {
  if (service_ == nullptr) return respond(Elsewhere(request));
  if (request.method != "POST") {
    return respond(net::HttpResponse::Text(405, "POST a certificate request\n"));
  }
  const std::string& who = request.peer.address;
  const std::string token = BearerToken(request);
  if (token.empty()) {
    return respond(Refuse(Refusal::kNoToken, who,
                          {Code::kPermissionDenied,
                           "send the pod's token, as Authorization: Bearer "
                           "TOKEN"}));
  }
  if (request.body.empty() || request.body.size() > kMaxCertificateRequestBytes) {
    return respond(Refuse(
        Refusal::kInvalidRequest, who,
        {Code::kInvalidArgument, "send a certificate request (PEM) of at most " +
                                     std::to_string(kMaxCertificateRequestBytes) + " bytes"}));
  }
  if (reviews_ >= options_.max_reviews) {
    return respond(
        Refuse(Refusal::kBusy, who,
               {Code::kResourceExhausted, "many nodes ask for certificates: try again"}));
  }
  ++reviews_;
  options_.review_token(token, [self = self_, body = request.body, who,
                                respond = std::move(respond)](const Result<std::string>& pod_name) {
    ControlGate* const gate = *self;
    if (gate == nullptr) return;
    --gate->reviews_;
    respond(gate->Sign(body, who, pod_name));
  });
}

net::HttpResponse ControlGate::Sign(const std::string& request, const std::string& who,
                                    const Result<std::string>& pod_name) {
  if (!pod_name) {
    const bool denied = pod_name.error().code() == Code::kPermissionDenied;
    return denied ? Refuse(Refusal::kTokenRefused, who, pod_name.error())
                  : ErrorResponse(pod_name.error());
  }
  // Leadership may have gone while the token was reviewed.
  if (service_ == nullptr) {
    return ErrorResponse({Code::kUnavailable, "this replica leads no more: ask again"});
  }
  const Result<std::string> chain = options_.sign(request, *pod_name);
  if (!chain) {
    const bool invalid = chain.error().code() == Code::kInvalidArgument;
    return invalid ? Refuse(Refusal::kInvalidRequest, who, chain.error())
                   : ErrorResponse(chain.error());
  }
  ++certificates_;
  Log(LogLevel::kInfo, "node certificate signed", {{"pod", *pod_name}, {"peer", who}});
  return {.status = 200,
          .headers = {{"Content-Type", "application/pem-certificate-chain"}},
          .body = *chain};
}

void ControlGate::VisitCounters(const CounterVisitor& visitor) const {
  visitor(MetricKind::kCounter, "optcache_node_certificates_total", {},
          static_cast<double>(certificates_));
  for (std::size_t i = 0; i < kRefusals; ++i) {
    visitor(MetricKind::kCounter, "optcache_control_refusals_total",
            {{"reason", std::string(NameOf(static_cast<Refusal>(i)))}},
            static_cast<double>(refusals_.at(i)));
  }
}

}  // namespace optcache::control
