#pragma once

#include <memory>
#include <string>

#include "net/dialer.h"
#include "net/server.h"
#include "support/test_ca.h"

namespace optcache::net {

// The ways in which wire messages travel (docs/formats/wire.md, Transports).
enum class Transport { kPlain, kTls, kBulk };

inline std::string TransportName(Transport transport) {
  if (transport == Transport::kPlain) return "Plain";
  return transport == Transport::kTls ? "Tls" : "Bulk";
}

// Whom all sides of a test trust.
inline const TestCa& CommonCa() {
  static const TestCa ca;
  return ca;
}

inline ServerOptions On(Transport transport, ServerOptions options) {
  if (transport == Transport::kPlain) return options;
  options.tls = CommonCa().Server({"optcache-node", "node-1"});
  options.bulk = transport == Transport::kBulk;
  return options;
}

// Nodes with a certificate, sidecars without.
inline DialOptions On(Transport transport, DialOptions options) {
  if (transport == Transport::kPlain) return options;
  options.tls = options.hello.role == wire::Role::kNode ? CommonCa().Client({"optcache-node"})
                                                        : CommonCa().Client();
  options.bulk = transport == Transport::kBulk;
  return options;
}

}  // namespace optcache::net
