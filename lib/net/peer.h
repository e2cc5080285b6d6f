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

  // Is `name` one of dns_names? Without case, and without wildcards.
  bool Is(std::string_view name) const;
};

}  // namespace optcache::net
