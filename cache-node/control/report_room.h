#pragma once

// How much the ranks that a node lists take of its reports, by namespace, and which of those that
// have ended gives way to another. A rank that has ended is listed for a minute: without a bound,
// who attaches and ends in a loop makes the reports too large to be taken, for all namespaces.

#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"
#include "coordination/state.h"
#include "wire/messages.h"

namespace optcache::node {

// Bytes of a report's JSON text. What is not a stream takes less than the other half
// (coordination/report_size.h).
inline constexpr std::size_t kMaxListedBytes = coordination::kMaxReportBytes / 2;
inline constexpr std::size_t kMaxListedBytesOfNamespace = kMaxListedBytes / 4;

// Not thread-safe: a value with one owner.
class ReportRoom {
 public:
  struct EndedRank {
    MonotonicTime since;
    StreamId stream = 0;
    Rank rank = 0;
    friend auto operator<=>(const EndedRank&, const EndedRank&) = default;
  };

  // kResourceExhausted: its namespace has its share, or there is no room for `bytes` more.
  Status Fits(const std::string& name_space, std::size_t bytes) const;
  void Take(const std::string& name_space, std::size_t bytes);
  // Of what was taken.
  void Free(const std::string& name_space, std::size_t bytes);

  // Of a rank that has taken room.
  void OnEnded(const std::string& name_space, const EndedRank& rank);
  // Before its room is freed.
  void OnGone(const std::string& name_space, const EndedRank& rank);

  // Who ended first.
  std::optional<EndedRank> FirstEnded() const;
  // Who gives way to `bytes` more of that namespace; nothing: nobody can. It is one of its own
  // where there is one, so that nobody keeps the ends of others from being reported.
  std::optional<EndedRank> GivesWay(const std::string& name_space, std::size_t bytes) const;

  std::size_t bytes() const { return bytes_; }

 private:
  struct Share {
    std::size_t bytes = 0;
    std::set<EndedRank> ended;
  };
  bool HasShareFor(const std::string& name_space, std::size_t bytes) const;
  std::optional<EndedRank> FirstEndedOf(const std::string& name_space) const;

  std::map<std::string, Share> shares_;  // by namespace, of those that have something
  std::size_t bytes_ = 0;                // of all
};

}  // namespace optcache::node
