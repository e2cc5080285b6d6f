#pragma once

// Who holds a Lease, and what to do about it: leaderelection.go of client-go as a pure state
// machine. leader_election.h carries out its steps.
//
// Safety: a holder's own time starts when it sends a renewal and ends after renew_deadline; the
// others' time starts when they first see that renewal, which is later, and ends after
// lease_duration, which is longer.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/clock.h"
#include "base/random.h"

namespace optcache::kube {

// Both of our clocks at one moment. The monotonic one stands still while a machine sleeps; that
// much more time has passed as the other has gone on by then.
struct Moment {
  MonotonicTime at;
  double unix_seconds = 0;

  static Moment Of(const Clock& clock) { return {clock.Now(), clock.UnixSeconds()}; }
};
Duration Elapsed(const Moment& from, const Moment& to);

// spec of a Lease. Times are texts: they are shown and compared for change, never computed with.
struct LeaseRecord {
  std::string holder;
  std::int64_t duration_seconds = 0;
  std::string acquire_time;
  std::string renew_time;
  std::uint64_t transitions = 0;
  bool operator==(const LeaseRecord&) const = default;
};

struct ElectionOptions {
  std::string identity;
  Duration lease_duration = std::chrono::seconds(15);
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry_period = std::chrono::seconds(2);
};

struct ReadLease {};
// Create it, or replace the version that was read or written last.
struct WriteLease {
  LeaseRecord record;
  bool create = false;
};
struct WaitForLease {
  Duration wait{};
};
using ElectionStep = std::variant<ReadLease, WriteLease, WaitForLease>;

enum class WriteFailure {
  kConflict,  // somebody else has written, or the Lease has come or gone
  kOther
};

// One call an event, each answered by the step to take now. Not thread-safe: a value with one
// owner.
class Election {
 public:
  Election(ElectionOptions options, std::uint64_t seed);

  // To begin, and when a wait is over.
  ElectionStep Next(const Moment& now);
  // Nothing: there is no Lease.
  ElectionStep OnRead(const std::optional<LeaseRecord>& record, const Moment& now);
  ElectionStep OnReadFailed() { return Retry(); }
  ElectionStep OnWritten(const Moment& now);
  ElectionStep OnWriteFailed(WriteFailure failure);
  // Leads no more, of its own will or because it has lost. It may lead again, with another term.
  void Resign() { leading_ = false; }

  // How long writes are safe from `now` on; nothing if it does not lead, whatever led to that.
  std::optional<Duration> LeadsFor(const Moment& now) const;
  // It has led, does so no more and did not resign: then Resign is the next thing to do.
  bool Lost(const Moment& now) const { return leading_ && !LeadsFor(now); }
  // How long ago a lost leadership has ended.
  Duration LostSince(const Moment& now) const;
  // Of the newest leadership; 0 before.
  std::uint64_t term() const { return term_; }
  // Who holds the Lease, as last seen; "" if it has run out.
  std::string Holder(const Moment& now) const;

 private:
  bool HeldByAnother(const Moment& now) const;
  ElectionStep Write(const Moment& now, bool create);
  ElectionStep Retry();

  const ElectionOptions options_;
  Random random_;
  std::optional<LeaseRecord> seen_;  // as it was last
  MonotonicTime seen_at_;            // when it became so, for us
  LeaseRecord sent_;                 // by the write under way
  Moment sent_at_;
  bool leading_ = false;
  Moment renewed_at_;  // when the last good renewal was sent
  std::uint64_t term_ = 0;
};

}  // namespace optcache::kube
