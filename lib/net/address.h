#pragma once

// Where somebody listens: "host:port", "[::1]:port", "*:port" or "unix:/path".

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace optcache::net {

// All addresses of this machine, of IPv6 and of IPv4; only to listen on.
inline constexpr std::string_view kEverywhere = "*";

struct Address {
  std::string host;  // name, number or kEverywhere; empty for a Unix socket
  std::uint16_t port = 0;
  std::string path;  // of a Unix socket
  friend bool operator==(const Address&, const Address&) = default;

  bool is_unix() const { return !path.empty(); }
};

// kInvalidArgument says what an address looks like.
Result<Address> ParseAddress(std::string_view text);

std::string FormatAddress(const Address& address);

// The path of "unix:/path"; empty: `text` is something else.
std::string UnixPathOf(std::string_view text);

// A number alone, as Kubernetes tells it ("10.0.0.7", "fd00::7"), gets `port`; all else stays.
std::string WithPort(std::string text, std::uint16_t port);

}  // namespace optcache::net
