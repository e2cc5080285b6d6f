#include "net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/whole_number.h"

namespace optcache::net {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";

Result<std::uint16_t> ParsePort(std::string_view text) {
  if (const auto port = ParseWholeNumber<std::uint16_t>(text)) return *port;
  return Error(Code::kInvalidArgument, "'" + std::string(text) + "' is not a port (0 to 65535)");
}

}  // namespace

Result<Address> ParseAddress(std::string_view text) {
  const std::string quoted = "'" + std::string(text) + "'";
  if (text.starts_with(kUnixPrefix)) {
    const std::string_view path = text.substr(kUnixPrefix.size());
    if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path)) {
      return Error(Code::kInvalidArgument,
                   quoted + ": the path of a Unix socket has 1 to 107 characters");
    }
    return Address{.path = std::string(path)};
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    return Error(Code::kInvalidArgument,
                 quoted + " is not an address; write host:port or unix:/path");
  }
  auto port = ParsePort(text.substr(colon + 1));
  if (!port) return Error(std::move(port).error().WithContext(quoted));
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return Error(Code::kInvalidArgument, quoted + ": write an IPv6 address as [address]:port");
  }
  return Address{.host = std::string(host), .port = *port};
}

std::string FormatAddress(const Address& address) {
  if (address.is_unix()) return std::string(kUnixPrefix) + address.path;
  const bool v6 = address.host.find(':') != std::string::npos;
  return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

std::string UnixPathOf(std::string_view text) {
  return text.starts_with(kUnixPrefix) ? std::string(text.substr(kUnixPrefix.size())) : "";
}

std::string WithPort(std::string text, std::uint16_t port) {
  in6_addr number = {};  // has room for both
  const bool is_number = ::inet_pton(AF_INET, text.c_str(), &number) == 1 ||
                         ::inet_pton(AF_INET6, text.c_str(), &number) == 1;
  return is_number ? FormatAddress({.host = std::move(text), .port = port}) : text;
}

}  // namespace optcache::net
