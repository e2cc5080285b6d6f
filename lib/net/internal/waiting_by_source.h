#pragma once

// Connections that have not said yet who they are, by where they come from: a source that opens
// many loses of its own, and others lose none.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace optcache::net {

// Of an address of a peer: "10.0.0.7" of "10.0.0.7:4123"; of IPv6 the network of 64 bits, which one
// machine may have whole. Empty for a Unix socket, where all peers look alike.
std::string SourceOf(const std::string& address);

// Not thread-safe: a value with one owner.
class WaitingBySource {
 public:
  // Ids rise with the time since when they wait.
  void Add(const std::string& source, std::uint64_t id);
  // Nothing happens for one that does not wait.
  void Remove(const std::string& source, std::uint64_t id);

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t size(const std::string& source) const;
  // The one that waits longest: of that source, or of the source of which most wait.
  std::optional<std::uint64_t> Longest(const std::string& source) const;
  std::optional<std::uint64_t> LongestOfMost() const;

 private:
  std::map<std::string, std::set<std::uint64_t>> sources_;  // none is empty
  std::size_t size_ = 0;
};

}  // namespace optcache::net
