#include "net/internal/waiting_by_source.h"

#include <arpa/inet.h>

#include <array>
#include <string_view>

namespace optcache::net {

std::string SourceOf(const std::string& address) {
  constexpr std::size_t kNetworkBytes = 8;
  if (address.starts_with("unix:")) return "";
  std::string host = address.substr(0, address.rfind(':'));
  if (!host.starts_with('[') || !host.ends_with(']')) return host;
  host = host.substr(1, host.size() - 2);
  in6_addr number = {};
  if (::inet_pton(AF_INET6, host.c_str(), &number) != 1) return host;  // fe80::1%eth0
  for (std::size_t i = kNetworkBytes; i < sizeof(number.s6_addr); ++i)
    number.s6_addr[i] = 0;
  std::array<char, INET6_ADDRSTRLEN> text = {};
  ::inet_ntop(AF_INET6, &number, text.data(), text.size());
  return text.data();
}

void WaitingBySource::Add(const std::string& source, std::uint64_t id) {
  if (sources_[source].insert(id).second) ++size_;
}

void WaitingBySource::Remove(const std::string& source, std::uint64_t id) {
  const auto found = sources_.find(source);
  if (found == sources_.end() || found->second.erase(id) == 0) return;
  --size_;
  if (found->second.empty()) sources_.erase(found);
}

std::size_t WaitingBySource::size(const std::string& source) const {
  const auto found = sources_.find(source);
  return found == sources_.end() ? 0 : found->second.size();
}

std::optional<std::uint64_t> WaitingBySource::Longest(const std::string& source) const {
  const auto found = sources_.find(source);
  if (found == sources_.end()) return std::nullopt;
  return *found->second.begin();
}

std::optional<std::uint64_t> WaitingBySource::LongestOfMost() const {
  const std::set<std::uint64_t>* most = nullptr;
  for (const auto& [_, ids] : sources_) {
    const bool is_more = most == nullptr || ids.size() > most->size() ||
                         (ids.size() == most->size() && *ids.begin() < *most->begin());
    if (is_more) most = &ids;
  }
  if (most == nullptr) return std::nullopt;
  return *most->begin();
}

}  // namespace optcache::net
