#pragma once

// What one side of TLS connections knows: its certificate, its key and whom it trusts. Exchanged
// while connections go on, since certificates live for hours.
//
//   auto tls = std::make_shared<TlsContext>(TlsRole::kServer, ClientCertificate::kRequired);
//   RETURN_IF_ERROR(tls->Replace({.chain = chain, .key = key, .trust = bundle}));
//   ListenHttp(loop, address, {.tls = tls}, handler);
//
// TLS 1.2 and 1.3 with forward secrecy; sessions are not resumed, so that each connection proves
// its peer again.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/counters.h"
#include "base/status.h"

namespace optcache::net {

// All in PEM.
struct TlsMaterial {
  std::string
      chain;        // the own certificate, then those between it and the CA; a client may have none
  std::string key;  // of the own certificate, not encrypted; never logged
  std::string trust;  // CA certificates, one of which must have signed the peer's
  friend bool operator==(const TlsMaterial&, const TlsMaterial&) = default;
};

enum class TlsRole { kServer, kClient };

// What a server asks of its clients. One that is shown must be good in any case.
enum class ClientCertificate { kNone, kRequested, kRequired };

// Used on the loop's thread only. Shared by the programs that replace its material and the servers
// and clients that use it.
class TlsContext {
 public:
  // Without material: a server closes who connects, a client fails with kUnavailable.
  explicit TlsContext(TlsRole role,
                      ClientCertificate client_certificate = ClientCertificate::kNone);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // From now on new connections use `material`; those that are open go on with the old.
  // kInvalidArgument says what is wrong with it, and the old stays: a text that is not PEM, a key
  // that does not fit, nothing to trust (a client, a server that asks for certificates), or no
  // certificate (a server).
  Status Replace(TlsMaterial material);

  bool ready() const { return material_ != nullptr; }
  // Null until it is ready. Another pointer after each change.
  std::shared_ptr<const TlsMaterial> material() const { return material_; }
  // When the own certificate expires, in Unix seconds; 0 if there is none.
  double expires_at() const { return expires_at_; }
  TlsRole role() const { return role_; }

  // For the .cc files of net only.
  class Impl;
  const Impl& impl() const { return *impl_; }

 private:
  TlsRole role_;
  std::shared_ptr<const TlsMaterial> material_;
  double expires_at_ = 0;
  std::unique_ptr<Impl> impl_;
};

// How fast a server lets TLS handshakes begin; those that come faster wait. One takes about half a
// millisecond of the loop's thread, so after its burst a single source takes a tenth of it at most.
// Source: a client's IP address.
struct HandshakePace {
  double per_second = 1000;
  int burst = 16;  // at once, after a rest
  double per_second_of_source = 200;
  int burst_of_source = 64;
};

// Why a connection did not come about.
enum class HandshakeFailure {
  kTimeout,        // the peer did not say its part in time
  kNotReady,       // this side has no certificate yet
  kNoCertificate,  // the peer showed none
  kUntrusted,  // the peer's is expired, not signed by a CA that we trust, or for another purpose
  kWrongName,  // the server's is for another name
  kRejected,   // the peer did not like ours
  kNotTls,     // the peer speaks something else
  kProtocol,   // no common version or cipher, or broken messages
  kGone,       // the peer went
};

std::string_view HandshakeFailureName(HandshakeFailure failure);

// How often each was seen, for VisitCounters.
struct HandshakeFailures {
  static constexpr std::size_t kKinds = static_cast<std::size_t>(HandshakeFailure::kGone) + 1;
  std::array<std::uint64_t, kKinds> counts{};

  void Count(HandshakeFailure failure) { ++counts.at(static_cast<std::size_t>(failure)); }
  // As optcache_tls_handshake_failures_total; `labels` say whose they are.
  void Visit(const CounterVisitor& visitor, const MetricLabels& labels) const;
};

}  // namespace optcache::net
