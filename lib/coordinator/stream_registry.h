#pragma once

// Which streams read one manifest, and in which generation of a stream a rank reads.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "coordination/state.h"
#include "coordinator/trace_registry.h"
#include "coordinator/tracked_stream.h"

namespace optcache::coordination {

// Whether there is room for a stream, and whether another manifest has a later one of its name, its
// owner decides. Not thread-safe: a value with one owner.
class StreamRegistry {
 public:
  struct Silence {
    Duration rank;    // then it is lost
    Duration stream;  // then it has ended
  };
  // Of streams, each with the larger of its generations.
  struct RankCount {
    std::optional<std::size_t> named;  // of the largest of that name; nullopt: there is none
    std::size_t others = 0;            // of all other streams together
  };

  const TrackedStreams& streams() const { return streams_; }
  const TraceRegistry& traces() const { return traces_; }
  const std::vector<std::string>& refused() const { return refused_; }  // names, some
  // Does nothing read, and nothing begin?
  bool empty() const { return streams_.empty() && next_generations_.empty(); }
  RankCount CountRanks(std::string_view name) const;
  std::size_t ranks() const;  // of all streams, each with the larger of its generations

  // Has another stream the id of this one?
  bool IsIdOfAnother(const StreamReport& report) const;
  // Is there a stream of that name and a later incarnation?
  bool HasLater(const StreamReport& report) const;
  // Ends the streams of that name: all of them, or those of earlier incarnations.
  void EndAll(std::string_view name);
  void EndEarlier(const StreamReport& report);
  // Notes a name for the status.
  void Refuse(const std::string& stream);

  // The stream of that id is not known.
  void Begin(const StreamReport& report, Version generation, MonotonicTime now);
  // Of a stream that is known: was the rank started again, and no other before it?
  bool NeedsNextGeneration(StreamId stream, const RankReport& rank) const;
  void BeginNextGeneration(const StreamReport& report, Version generation, MonotonicTime now);
  // What a rank of a stream that is known says, in the generation in which it reads.
  void Observe(StreamId stream, const RankReport& rank, MemberId member, MonotonicTime now);
  void NotePosition(const RankPosition& position, MemberId member);

  // Streams that have ended or were silent go, and next generations take their streams' places.
  // Returns the streams of which one did.
  std::vector<StreamId> EndStreams(const Silence& silence, MonotonicTime now);
  // Ends those in which nobody reads and that read another manifest now.
  void EndIdle(const TrackedStreams& elsewhere);
  void ForgetMember(MemberId member);
  // Nobody listened for this long: that was not the ranks' silence.
  void Forgive(Duration pause);

  // Is that a list which the member's ranks of the stream name, of a pass still to be planned, and
  // which is not here?
  bool WantsTrace(StreamId stream, MemberId member, const PassTrace& trace) const;
  // Is that a list which the member's ranks name, and which is not here?
  bool LacksTrace(MemberId member, std::string_view digest) const;
  // As TraceRegistry::Take.
  Status TakeTrace(std::string_view digest, std::string bytes, std::uint64_t samples);
  // Joins the lists of passes, and forgets those that neither ranks nor the plan in force name.
  void FollowTraces(const std::vector<StreamState>& planned, std::uint64_t samples);

 private:
  TrackedStream& GenerationOf(StreamId stream, const RankReport& rank, MemberId member);
  std::vector<StreamId> BeginNextGenerations();
  std::size_t WorldOf(const TrackedStream& stream) const;

  TrackedStreams streams_;
  // Of jobs that are being started again: they take their stream's place when all of their ranks
  // read, or none of those before.
  TrackedStreams next_generations_;
  TraceRegistry traces_;
  std::vector<std::string> refused_;  // streams that do not fit; bounded
};

}  // namespace optcache::coordination
