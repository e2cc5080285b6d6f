#include "net/internal/connections_by_source.h"

namespace optcache::net {

std::string SourceOf(const std::string& address) {
  if (address.starts_with("unix:")) return "";
  const std::string host = address.substr(0, address.rfind(':'));
  const bool is_bracketed = host.starts_with('[') && host.ends_with(']');
  return is_bracketed ? host.substr(1, host.size() - 2) : host;
}

ConnectionsBySource::Rank ConnectionsBySource::RankOf(const std::string& source, const Ids& ids) {
  return {ids.size(), ~*ids.begin(), source};
}

void ConnectionsBySource::Add(const std::string& source, std::uint64_t id) {
  Ids& ids = sources_[source];
  if (!ids.empty()) ranks_.erase(RankOf(source, ids));
  if (ids.insert(id).second) ++size_;
  ranks_.insert(RankOf(source, ids));
}

void ConnectionsBySource::Remove(const std::string& source, std::uint64_t id) {
  const auto found = sources_.find(source);
  if (found == sources_.end() || !found->second.contains(id)) return;
  Ids& ids = found->second;
  ranks_.erase(RankOf(source, ids));
  ids.erase(id);
  --size_;
  if (!ids.empty()) {
    ranks_.insert(RankOf(source, ids));
  } else {
    sources_.erase(found);
  }
}

std::size_t ConnectionsBySource::size(const std::string& source) const {
  const auto found = sources_.find(source);
  return found == sources_.end() ? 0 : found->second.size();
}

std::optional<std::string> ConnectionsBySource::Most() const {
  if (ranks_.empty()) return std::nullopt;
  return std::get<std::string>(*ranks_.rbegin());
}

std::optional<std::uint64_t> ConnectionsBySource::Oldest(const std::string& source) const {
  const auto found = sources_.find(source);
  if (found == sources_.end()) return std::nullopt;
  return *found->second.begin();
}

std::optional<std::uint64_t> ConnectionsBySource::OldestOfMost() const {
  if (ranks_.empty()) return std::nullopt;
  return ~std::get<1>(*ranks_.rbegin());
}

}  // namespace optcache::net
