#pragma once

// Connections by where they come from: where places are short, a source that opens many loses of
// its own, and others lose none.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

namespace optcache::net {

// The IP address of a peer: "10.0.0.7" of "10.0.0.7:4123", "fd00::7" of "[fd00::7]:4123". Not its
// network: all pods of a machine share one of 64 bits. Empty for a Unix socket, where all peers
// look alike.
std::string SourceOf(const std::string& address);

// Not thread-safe: a value with one owner.
class ConnectionsBySource {
 public:
  // Ids rise with the time. Nothing happens for one that is there.
  void Add(const std::string& source, std::uint64_t id);
  // Nothing happens for one that is not there.
  void Remove(const std::string& source, std::uint64_t id);

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t size(const std::string& source) const;
  // The source that has most, of equals the one with the oldest.
  std::optional<std::string> Most() const;
  // The oldest one: of that source, or of the source that has most.
  std::optional<std::uint64_t> Oldest(const std::string& source) const;
  std::optional<std::uint64_t> OldestOfMost() const;

 private:
  using Ids = std::set<std::uint64_t>;
  // How many it has, and its oldest with all bits turned round: the greatest has most.
  using Rank = std::tuple<std::size_t, std::uint64_t, std::string>;
  static Rank RankOf(const std::string& source, const Ids& ids);

  std::map<std::string, Ids> sources_;  // none is empty
  std::set<Rank> ranks_;                // of all of them
  std::size_t size_ = 0;
};

}  // namespace optcache::net
