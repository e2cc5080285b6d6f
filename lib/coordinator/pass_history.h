#pragma once

// What members have counted of one manifest, also those that have gone, and what came of passes
// that were read.

#include <map>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "coordination/state.h"
#include "coordination/status.h"
#include "coordinator/read_ratios.h"
#include "coordinator/tracked_stream.h"

namespace optcache::coordination {

// `streams` are those that read the manifest now, `mean_sample_bytes` is the mean size of its
// samples. Not thread-safe: a value with one owner.
class PassHistory {
 public:
  using Reports = std::map<MemberId, DatasetReport>;

  // It takes the place of what the member said before.
  void Take(MemberId member, const DatasetReport& report);
  // The member says nothing of the manifest any more.
  void Drop(MemberId member) { reports_.erase(member); }
  // The member has gone; its counters stay in the sum.
  void MemberHasGone(MemberId member);
  // What members that have gone counted of an earlier generation of the stream.
  void ForgetPasses(StreamId stream);
  // Notes the sum once a minute.
  void FollowRecent(MonotonicTime now);
  // Keeps the passes and ratios of streams that have ended, for a while. To be called before these
  // streams go.
  void KeepEndedPasses(const TrackedStreams& streams, ByteCount mean_sample_bytes,
                       MonotonicTime now);

  const Reports& reports() const { return reports_; }
  // Of the members' reports, and of those that have gone; without name and digest.
  DatasetReport Sum() const;
  // Of streams that read and of those that have ended lately, by stream and pass.
  std::vector<PassStatus> Passes(const TrackedStreams& streams) const;
  // `passes` and `sum` are Passes() and Sum().
  HitRatios Ratios(const std::vector<PassStatus>& passes, const DatasetReport& sum,
                   ByteCount mean_sample_bytes) const;

 private:
  // A whole pass of a stream that has ended, for a while: its host may not have seen it yet.
  struct EndedPass {
    PassStatus pass;
    MonotonicTime ended_at;
  };
  std::vector<PassStatus> PassesOf(const TrackedStreams& streams) const;

  Reports reports_;
  DatasetReport departed_;  // counters of members that have gone
  std::vector<EndedPass> ended_passes_;
  RecentReads recent_;
  HitRatios ended_ratios_;  // as a stream ended: of the last passes, whose reports go with it
};

}  // namespace optcache::coordination
