// Asks for the node's certificate when it is due, and shows key, chain and trust to both TLS
// contexts.
//
// Two timers run. One looks at the CA bundle every five seconds, because it may come after the pod
// and changes with the CA. The other looks at the clock: a certificate is due when there is none,
// when two thirds of its life are over, or when the bundle does not verify it any more. One request
// is under way at a time, each with a new key. Key and chain are checked together before they are
// used, and are kept in one file, written atomically. A failure is logged when its reason is
// another than before, and is tried again with backoff.

#include "cache-node/trust/identity.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "base/log.h"
#include "net/connection.h"
#include "pki/pki.h"

namespace optcache::node {
namespace {

constexpr auto kLookEvery = std::chrono::seconds(5);  // at the CA bundle, and at the clock
constexpr auto kAskTimeout = std::chrono::seconds(20);
constexpr BackoffOptions kRequestBackoff = {.first = std::chrono::seconds(1),
                                            .limit = std::chrono::seconds(30)};
constexpr std::string_view kBeginCertificate = "-----BEGIN CERTIFICATE-----";
constexpr pki::Usages kBothSides = {.server = true, .client = true};
constexpr std::size_t kAnswerMax = 300;  // of what is repeated in a log

}  // namespace

std::int64_t RenewAt(std::int64_t not_before, std::int64_t not_after) {
  return not_before + (not_after - not_before) / 3 * 2;
}

Identity::Identity(net::EventLoop& loop, const Clock& clock, IdentityOptions options,
                   ControlHttp& control, std::shared_ptr<net::TlsContext> server,
                   std::shared_ptr<net::TlsContext> client)
    : loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      control_(control),
      server_(std::move(server)),
      client_(std::move(client)),
      backoff_(kRequestBackoff, options_.seed) {}

void Identity::Start(std::function<void()> on_ready) {
  on_ready_ = std::move(on_ready);
  trust_timer_ = net::PeriodicTimer(loop_, kLookEvery, [this] { LookAtTrust(); });
  LookAtTrust();
  RenewWhenDue();
}

Status Identity::Ready() const {
  if (!pair_) return problem_;
  if (clock_.UnixSeconds() < static_cast<double>(pair_->not_after)) return OkStatus();
  return {Code::kUnavailable, "the node's certificate has expired: " + problem_.message()};
}

// The ConfigMap may come after the pod, and changes when the CA does.
void Identity::LookAtTrust() {
  auto trust = ReadFile(options_.ca_file, pki::kMaxBundleBytes);
  if (!trust) {
    if (trust_.empty()) Failed(std::move(trust).error().WithContext("the CA bundle"));
    return;
  }
  if (*trust == trust_) return;
  const bool first = trust_.empty();
  trust_ = *std::move(trust);
  if (!pair_) Load();
  Show();
  if (!first) Log(LogLevel::kInfo, "the CA bundle has changed", {{"file", options_.ca_file}});
  RenewWhenDue();
}

void Identity::Load() {
  const auto text = ReadFile(File(), 2 * pki::kMaxPemBytes);
  if (!text) return;
  const std::size_t chain = text->find(kBeginCertificate);
  if (chain == std::string::npos) return;
  auto pair = Check(text->substr(0, chain), text->substr(chain));
  if (pair) {
    pair_ = *std::move(pair);
  } else {
    Log(LogLevel::kInfo, "the kept certificate is of no more use, asking for another",
        {{"why", pair.error().message()}});
  }
}

Result<Identity::Pair> Identity::Check(std::string key, std::string chain) const {
  RETURN_IF_ERROR(pki::KeyMatches(key, chain));
  const auto now = static_cast<std::int64_t>(clock_.UnixSeconds());
  RETURN_IF_ERROR(pki::Verify(chain, trust_, now, kBothSides));
  ASSIGN_OR_RETURN(const pki::Certificate leaf, pki::Inspect(chain));
  if (std::ranges::find(leaf.dns_names, net::kNodeServerName) == leaf.dns_names.end()) {
    return Error(Code::kPermissionDenied, "the certificate is not that of a node");
  }
  return Pair{.key = std::move(key),
              .chain = std::move(chain),
              .not_before = leaf.validity.not_before,
              .not_after = leaf.validity.not_after};
}

// Looks at the clock now and then, since a machine's may jump.
void Identity::RenewWhenDue() {
  if (asking_) return;
  renew_timer_ = loop_.After(kLookEvery, [this] { RenewWhenDue(); });
  const auto now = static_cast<std::int64_t>(clock_.UnixSeconds());
  if (trust_.empty()) return;
  const bool due = !pair_ || now >= RenewAt(pair_->not_before, pair_->not_after) ||
                   !pki::Verify(pair_->chain, trust_, now, kBothSides).ok();
  if (due) Renew();
}

void Identity::Renew() {
  const Status status = Ask();
  if (!status.ok()) Failed(status);
}

// A new key each time: one that got out is of no use for long.
Status Identity::Ask() {
  ASSIGN_OR_RETURN(std::string key, pki::MakeKey());
  ASSIGN_OR_RETURN(std::string csr,
                   pki::MakeRequest(key, {std::string(net::kNodeServerName), options_.name}));
  ASSIGN_OR_RETURN(const std::string token, ReadToken(options_.token_file));
  net::HttpRequest request{
      .method = "POST",
      .url = "/v1/certificates",
      .headers = {{"Authorization", "Bearer " + token}, {"Content-Type", "application/x-pem-file"}},
      .body = std::move(csr)};
  asking_ = true;
  control_.Send(std::move(request), kAskTimeout,
                [this, key = std::move(key)](const Result<net::HttpResponse>& response) {
                  asking_ = false;
                  OnAnswer(key, response);
                });
  return OkStatus();
}

void Identity::OnAnswer(std::string key, const Result<net::HttpResponse>& response) {
  if (!response) return Failed(response.error());
  if (response->status != 200) {
    return Failed(
        {Code::kUnavailable, fmt::format("{} answered {}: {}", control_.server(), response->status,
                                         response->body.substr(0, kAnswerMax))});
  }
  auto pair = Check(std::move(key), response->body);
  if (!pair) {
    return Failed(std::move(pair).error().WithContext("the certificate that was given"));
  }
  const Status taken = Take(*std::move(pair));
  if (!taken.ok()) return Failed(taken);
  renew_timer_ = loop_.After(kLookEvery, [this] { RenewWhenDue(); });
}

// One file, so that a key never stands beside another's certificate.
Status Identity::Take(Pair pair) {
  const bool first = !pair_;
  pair_ = std::move(pair);
  ++renewals_;
  backoff_.Reset();
  problem_ = OkStatus();
  Show();
  Log(LogLevel::kInfo, first ? "certificate received" : "certificate renewed",
      {{"name", options_.name}, {"expires", pair_->not_after}});
  return WriteFileAtomically(File(), pair_->key + pair_->chain).WithContext("keep it");
}

void Identity::Failed(const Status& why) {
  ++failures_;
  Status problem(Code::kUnavailable, "waiting for a certificate: " + why.message());
  if (problem != problem_) {
    Log(LogLevel::kWarning,
        pair_ ? "certificate not renewed, trying again" : "no certificate yet, trying again",
        {{"why", why.ToString()}});
  }
  problem_ = std::move(problem);
  renew_timer_ = loop_.After(backoff_.Next(), [this] { RenewWhenDue(); });
}

void Identity::Show() {
  net::TlsMaterial material{.trust = trust_};
  if (pair_) {
    material.key = pair_->key;
    material.chain = pair_->chain;
    if (const Status status = server_->Replace(material); !status.ok()) return Failed(status);
  }
  if (const Status status = client_->Replace(material); !status.ok()) return Failed(status);
  if (pair_ && on_ready_) std::exchange(on_ready_, nullptr)();
}

void Identity::VisitCounters(const CounterVisitor& visitor) const {
  const auto time = [&visitor](const char* name, std::int64_t seconds) {
    visitor(MetricKind::kGauge, name, {{"certificate", "node"}}, static_cast<double>(seconds));
  };
  time("optcache_certificate_not_before_timestamp_seconds", pair_ ? pair_->not_before : 0);
  time("optcache_certificate_expiry_timestamp_seconds", pair_ ? pair_->not_after : 0);
  visitor(MetricKind::kCounter, "optcache_certificate_requests_total", {{"result", "issued"}},
          static_cast<double>(renewals_));
  visitor(MetricKind::kCounter, "optcache_certificate_requests_total", {{"result", "failed"}},
          static_cast<double>(failures_));
}

}  // namespace optcache::node
