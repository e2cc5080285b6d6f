#pragma once

// Who is at the other end of a connection, as far as that is proven.

#include <string>
#include <string_view>
#include <vector>

namespace optcache::net {

struct PeerInfo {
  std::string address;  // "10.0.0.7:4123" or "unix:/run/node.sock"
  // DNS names of the certificate that it proved to own and that our CAs signed; empty: it showed
  // none.
  std::vector<std::string> dns_names;
  // When that certificate expires, in Unix seconds; 0: it showed none.
  double expires_at = 0;

  // Is `name` one of dns_names? Without case, and without wildcards.
  bool Is(std::string_view name) const;
  // Does its certificate prove nothing any more?
  bool Expired(double unix_seconds) const { return expires_at > 0 && unix_seconds >= expires_at; }
};

}  // namespace optcache::net
