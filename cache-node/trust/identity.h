#pragma once

// The node's key and certificate: made, kept, shown and renewed in time.
//
//   key ── CSR, token ──► POST /v1/certificates ──► certificate ──► both TLS contexts, the volume
//    ▲                                                   │
//    └───────────── at two thirds of its life ───────────┘

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/result.h"
#include "cache-node/control/control_http.h"
#include "net/event_loop.h"
#include "net/periodic_timer.h"
#include "net/tls.h"

namespace optcache::node {

struct IdentityOptions {
  std::string name;        // the pod's, which stands in the certificate
  std::string token_file;  // proves that it is that pod; read for each request
  std::string ca_file;     // whom to trust; read again when it changes
  std::string folder;      // where key and certificate are kept
  std::uint64_t seed = 0;  // of the retries' jitter
};

// When a certificate of that life is to be renewed, in Unix seconds: at two thirds of it.
std::int64_t RenewAt(std::int64_t not_before, std::int64_t not_after);

// Used on the loop's thread only.
class Identity {
 public:
  // `control` outlives this, and asks with `client`. Both contexts are given material as soon as
  // there is some, and again whenever it changes.
  Identity(net::EventLoop& loop, const Clock& clock, IdentityOptions options, ControlHttp& control,
           std::shared_ptr<net::TlsContext> server, std::shared_ptr<net::TlsContext> client);

  // Reads what was kept; from then on asks for what is missing. `on_ready` is called when the
  // first certificate is there.
  void Start(std::function<void()> on_ready);

  // It has a certificate that is valid; else kUnavailable, what it waits for.
  Status Ready() const;

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  struct Pair {
    std::string key;
    std::string chain;
    std::int64_t not_before = 0;
    std::int64_t not_after = 0;
  };
  void LookAtTrust();
  void Load();
  Result<Pair> Check(std::string key, std::string chain) const;
  void RenewWhenDue();
  void Renew();
  Status Ask();
  void OnAnswer(std::string key, const Result<net::HttpResponse>& response);
  Status Take(Pair pair);
  void Failed(const Status& why);
  void Show();
  std::string File() const { return options_.folder + "/identity.pem"; }

  net::EventLoop& loop_;
  const Clock& clock_;
  IdentityOptions options_;
  ControlHttp& control_;
  std::shared_ptr<net::TlsContext> server_;
  std::shared_ptr<net::TlsContext> client_;
  std::function<void()> on_ready_;
  Backoff backoff_;
  std::string trust_;
  std::optional<Pair> pair_;
  Status problem_{Code::kUnavailable, "waiting for a certificate"};
  bool asking_ = false;
  std::uint64_t renewals_ = 0;
  std::uint64_t failures_ = 0;
  net::PeriodicTimer trust_timer_;
  net::Timer renew_timer_;
};

}  // namespace optcache::node
