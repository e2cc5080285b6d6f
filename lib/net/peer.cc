#include "net/peer.h"

#include <algorithm>
#include <ranges>

namespace optcache::net {
namespace {

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

bool PeerInfo::Is(std::string_view name) const {
  return std::ranges::any_of(dns_names, [&](const std::string& own) {
    return std::ranges::equal(own, name, {}, Lower, Lower);
  });
}

}  // namespace optcache::net
