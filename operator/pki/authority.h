#pragma once

// The installation's own certificate authority. All of it lives in one Secret, which the leader
// writes and both replicas read; what to do next follows from its content and the time alone.
//
//   Decision decision = Decide(clock.UnixSeconds(), secret, settings);
//   if (decision.write) apply the Secret (BuildSecret), then publish decision.bundle
//   serve with decision.leaf; call again at decision.next_check or when the Secret changes
//
// A new CA stands in all bundles for `propagation` before it signs anything, and an old one until
// the last certificate that it signed has expired: a part with a bundle that is not older than
// `propagation` can check every certificate that is served.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/result.h"

namespace optcache::authority {

using UnixSeconds = std::int64_t;

struct AuthoritySettings {
  std::string name = "optcache";              // the chart's full name
  std::string system_namespace = "optcache";  // where the chart is installed
  std::int64_t ca_lifetime_seconds = 365LL * 24 * 3600;
  std::int64_t leaf_lifetime_seconds = 7LL * 24 * 3600;
  std::int64_t node_leaf_lifetime_seconds = 24LL * 3600;
  // After this long everybody has a published bundle; at most an eighth of the CA's lifetime
  // counts.
  std::int64_t propagation_seconds = 600;
};

// kInvalidArgument says which lifetime is too short or too long.
Status CheckSettings(const AuthoritySettings& settings);

// The `data` of the Secret, decoded: ca.crt (the bundle), ca.key, next-ca.crt, next-ca.key,
// tls.crt, tls.key.
using SecretData = std::map<std::string, std::string>;

struct Leaf {
  std::string chain;  // PEM
  std::string key;    // PEM
};

// For people: an Event of the Secret and a line in the log.
struct Notice {
  bool warning = false;
  std::string reason;   // "AuthorityReplaced"
  std::string message;  // a sentence
};

struct Decision {
  std::optional<SecretData> write;  // the whole new content, for the leader to write
  std::string bundle;               // PEM: for caBundle and the ConfigMap optcache-ca
  Leaf leaf;                        // to serve with
  UnixSeconds next_check = 0;
  std::vector<Notice> notices;  // to be told once `write` is written; none without it
};

// What a leader does. Whatever the Secret holds, the decision has a bundle and a leaf that it
// verifies; kInternal: no key could be made.
Result<Decision> Decide(UnixSeconds now, const SecretData& secret,
                        const AuthoritySettings& settings);

// What a replica that does not lead serves with: nothing is made. kUnavailable while the Secret has
// no leaf that is good now.
Result<Leaf> ServingLeaf(UnixSeconds now, const SecretData& secret);

// A node's certificate: DNS names optcache-node and the pod's, for server and client. Only the key
// of `request` (CSR, PEM) counts, not what it asks for. kInvalidArgument: no request, or its
// signature is wrong; kUnavailable: the Secret has no CA that can sign now.
Result<std::string> SignNode(UnixSeconds now, const SecretData& secret,
                             const AuthoritySettings& settings, const std::string& request,
                             const std::string& pod_name);

// optcache_certificate_{not_before,expiry}_timestamp_seconds{certificate="ca"|"next_ca"|"operator"}.
void VisitValidities(const SecretData& secret, const CounterVisitor& visitor);

}  // namespace optcache::authority
