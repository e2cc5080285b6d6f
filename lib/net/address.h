#pragma once

// Where somebody listens: "host:port", "[::1]:port" or "unix:/path".

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace optcache::net {

struct Address {
  std::string host;  // name or number; empty for a Unix socket
  std::uint16_t port = 0;
  std::string path;  // of a Unix socket
  friend bool operator==(const Address&, const Address&) = default;

  bool is_unix() const { return !path.empty(); }
};

// kInvalidArgument says what an address looks like.
Result<Address> ParseAddress(std::string_view text);

std::string FormatAddress(const Address& address);

}  // namespace optcache::net
