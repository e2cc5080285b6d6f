#pragma once

// The control API's door in a cluster. Every replica of the operator has one; only the leader's
// has a service behind it.
//
//   POST /v1/certificates ─ token reviewed ─► signed       (who has no certificate yet)
//   anything else ─ node certificate ─► the service        (leads)
//                                    └► 307 to the leader, or 503
//
// Who is refused is told why, counted by reason and logged, once a second at most, without what it
// proved itself by.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/counters.h"
#include "base/log_limit.h"
#include "base/result.h"
#include "control/control_service.h"
#include "net/http.h"

namespace optcache::control {

// DNS name in every node's certificate.
inline constexpr std::string_view kNodeDnsName = "optcache-node";

inline constexpr std::size_t kMaxTokenBytes = 16U << 10U;
inline constexpr std::size_t kMaxCertificateRequestBytes = 16U << 10U;

struct ControlGateOptions {
  // Asks whose token this is; the answer is the name of the node's pod. kPermissionDenied: not that
  // of a node. Called once, now or later; not after the gate has died.
  std::function<void(const std::string& token, std::function<void(Result<std::string>)> answer)>
      review_token;
  // The certificate chain (PEM) for the key of a request (PEM) and that pod.
  std::function<Result<std::string>(const std::string& request, const std::string& pod_name)> sign;
  // Tokens that are being reviewed; who comes then is asked to come again. Fewer than the requests
  // that a client of the API server has under way: strangers' tokens hold nothing else up.
  std::size_t max_reviews = 16;
};

// Used on one thread.
class ControlGate {
 public:
  // `clock` outlives it.
  ControlGate(const Clock& clock, ControlGateOptions options);
  ~ControlGate();
  ControlGate(const ControlGate&) = delete;
  ControlGate& operator=(const ControlGate&) = delete;

  // This replica leads: `service`, which outlives the next call of Follow, answers.
  void Lead(ControlService& service);
  // Another one leads, at `url` ("https://10.0.0.7:8443"); empty: nobody does.
  void Follow(std::string url);

  // Calls `respond` once, now or later.
  void Handle(const net::HttpRequest& request, ControlService::Respond respond);

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  enum class Refusal {
    kNoCertificate,   // none was shown
    kNoNode,          // that of something else than a node
    kNoToken,         // no bearer token, or too long a one
    kTokenRefused,    // not the token of a node's pod
    kInvalidRequest,  // not a certificate request
    kBusy,            // too many reviews
  };
  static constexpr std::size_t kRefusals = static_cast<std::size_t>(Refusal::kBusy) + 1;
  static std::string_view NameOf(Refusal refusal);

  net::HttpResponse Refuse(Refusal refusal, const std::string& who, const Status& why);
  net::HttpResponse Elsewhere(const net::HttpRequest& request) const;
  void OnCertificates(const net::HttpRequest& request, ControlService::Respond respond);
  net::HttpResponse Sign(const std::string& request, const std::string& who,
                         const Result<std::string>& pod_name);

  const Clock& clock_;
  ControlGateOptions options_;
  ControlService* service_ = nullptr;
  std::string leader_;
  std::size_t reviews_ = 0;
  std::uint64_t certificates_ = 0;
  std::array<std::uint64_t, kRefusals> refusals_{};
  std::array<LogLimit, kRefusals> refusal_logs_;
  std::shared_ptr<ControlGate*>
      self_;  // shared with the reviews under way; null in it when it died
};

}  // namespace optcache::control
