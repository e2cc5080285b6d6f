#pragma once

// The installation's certificates on one replica: serves with what the Secret has, and, while this
// replica leads, keeps Secret and caBundle as operator/pki decides.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "kube/apply.h"
#include "kube/events.h"
#include "kube/informer.h"
#include "net/event_loop.h"
#include "net/tls.h"
#include "operator/pki/authority.h"

namespace optcache::manager {

// Used on the loop's thread only. What it borrows outlives it.
class CertificateKeeper {
 public:
  struct Parts {
    net::EventLoop& loop;
    const Clock& clock;
    kube::Informer& secret;
    kube::Informer& injectors;
    net::TlsContext& webhook_tls;
    net::TlsContext& control_tls;
  };
  CertificateKeeper(Parts parts, authority::AuthoritySettings settings);
  CertificateKeeper(const CertificateKeeper&) = delete;
  CertificateKeeper& operator=(const CertificateKeeper&) = delete;

  // This replica leads: `client` writes only as long as it does; `events` tells people. Both
  // outlive the call of Follow.
  void Lead(kube::Client& client, kube::EventRecorder& events);
  void Follow();

  // Called when the bundle that everybody is to trust is another one.
  void OnBundle(std::function<void()> callback) { on_bundle_ = std::move(callback); }
  // CA certificates (PEM), or empty while there are none.
  const std::string& bundle() const { return bundle_; }

  // A certificate for a node's key; errors as authority::SignNode.
  Result<std::string> Sign(const std::string& request, const std::string& pod_name) const;

  // Whether there is a certificate to serve with.
  Status ready() const;
  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  void Look();
  void LookAsLeader();
  // `notices` are told once it is written.
  void Write(authority::SecretData content, std::vector<authority::Notice> notices);
  void PublishCaBundle();
  void ServeWith(const authority::Leaf& leaf);
  void SetBundle(const std::string& bundle);
  void Tell(const authority::Notice& notice);
  void LookAgainIn(Duration wait);
  authority::UnixSeconds Now() const;

  Parts parts_;
  const authority::AuthoritySettings settings_;
  std::function<void()> on_bundle_;
  authority::SecretData content_;  // of the Secret; as the leader wrote it, before it is seen
  std::string seen_version_;       // resourceVersion of the Secret that content_ is of
  std::string bundle_;
  Status leaf_status_{Code::kUnavailable, "the certificates have not been read yet"};
  kube::EventRecorder* events_ = nullptr;
  std::unique_ptr<kube::Applier> secret_applier_;  // while this replica leads
  std::unique_ptr<kube::Applier> ca_applier_;
  bool writing_ = false;
  net::Timer again_;
};

}  // namespace optcache::manager
