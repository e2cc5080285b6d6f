#pragma once

// Which ranks read through this node, and how far they are. Fed by the sidecars, read by reports.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cache-node/control/report_room.h"
#include "cache-node/control/trace_parts.h"
#include "cache-node/retention/effects.h"
#include "coordination/state.h"
#include "wire/messages.h"

namespace optcache::node {

// Of lists, in bytes: of one connection, and in all.
inline constexpr std::uint64_t kMaxTraceBytesOfClient = 128_MiB;
inline constexpr std::uint64_t kMaxTraceBytesHere = 256_MiB;
inline constexpr PassNumber kTracesAhead = 3;
// Reads of later passes are no reads of a stream: each pass that is read here has the node plan on.
inline constexpr PassNumber kPassesAhead = 2;
// Far beyond what any job reads, so that plans may look passes ahead without a wrap.
inline constexpr PassNumber kMaxPass = 1'000'000'000;

// Not thread-safe: the event loop owns it.
class StreamTable {
 public:
  // A stream whose ranks here have all ended begins a new generation. Ranks that have ended give
  // way to others. kResourceExhausted beyond the limits of a report, in all or of the stream's
  // namespace; kInvalidArgument for what has no place in one.
  Status OnAttach(ClientId from, const wire::StreamAttach& attach);
  // Ignored for ranks that have not attached or have ended, where this version cannot read it, and
  // where there is no room for it: then the order stays unknown.
  void OnOrder(ClientId from, const wire::StreamOrder& order);
  // How far the rank reads its passes. Ignored for ranks that have not attached.
  void OnPassEnd(ClientId from, const wire::StreamPassEnd& end);
  // A part of a list. An error: what is wrong with it, or that there is no room for more; the rank
  // has no list of that pass then. Ignored for ranks that have not attached or have ended.
  Status OnTrace(ClientId from, const wire::StreamTrace& part);
  // Ignored for ranks that have not attached, and beyond kMaxPass.
  void OnProgress(ClientId from, const wire::StreamProgress& progress, MonotonicTime now);
  // Has `from` announced a rank of `stream` that reads `pass`, or is at most kPassesAhead before
  // it?
  bool Reads(ClientId from, StreamId stream, PassNumber pass = 0) const;
  // The reads of `get` are decided: answered, or on their way. Ignored for ranks that `from` has
  // not attached.
  void OnServed(ClientId from, const wire::Get& get);
  // `from` may not read there any more.
  void OnRevoked(ClientId from, StreamId stream, Rank rank);
  // The ranks of a sidecar that has gone are no longer listed: that is how their loss shows.
  void OnClosed(ClientId from);
  // Ranks that ended are listed for a minute, unless others need their room before.
  void Sweep(MonotonicTime now);

  // Takes at most kMaxListedBytes of a report.
  std::vector<coordination::StreamReport> Report() const;
  // The list of that digest, if a rank that is listed reads it; else null.
  std::shared_ptr<const std::string> TraceBytes(const std::string& digest) const;

  struct PassRange {
    PassNumber lowest = 0;
    PassNumber highest = 0;
  };
  // Over the ranks of `stream` that have begun to read here; nothing if there are none.
  std::optional<PassRange> Passes(StreamId stream) const;

  // Up to where this node has decided for each rank, for an inventory; without those that have
  // ended here.
  std::vector<coordination::RankPosition> Positions(wire::DatasetKey dataset) const;

  // Rises with everything the coordinator should hear of at once: attach, pass, end.
  std::uint64_t changes() const { return changes_; }

 private:
  struct RankState {
    ClientId from = 0;
    coordination::RankReport report;
    coordination::Cut decided;  // up to here
    std::optional<MonotonicTime> ended;
    std::map<PassNumber, TraceParts> traces;
    std::size_t listed_bytes = 0;  // taken of room_

    void ForgetTraces(PassNumber below);
    void ListTraces();
  };
  struct Stream {
    wire::StreamAttach attach;
    std::map<Rank, RankState> ranks;
    std::size_t listed_bytes = 0;  // taken of room_, beside the ranks'
  };
  RankState* Find(ClientId from, StreamId stream, Rank rank);
  bool HasRoomFor(ClientId from, const RankState& rank, const wire::StreamTrace& part) const;
  Status MakeRoom(const wire::StreamAttach& attach);
  Status MakeRoom(const std::string& name_space, std::size_t bytes, std::size_t streams);
  void Charge(const Stream& stream, std::size_t& charged, std::size_t bytes);
  void ForgetEnded(StreamId stream, Rank rank);
  void Drop(StreamId stream, Rank rank);
  // Of those that read here.
  static bool AllEnded(const Stream& stream);

  std::map<StreamId, Stream> streams_;
  ReportRoom room_;
  std::uint64_t changes_ = 0;
};

}  // namespace optcache::node
