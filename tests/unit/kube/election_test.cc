#include "kube/election.h"

#include <gtest/gtest.h>

#include "support/manual_clock.h"
#include "support/seeds.h"

namespace optcache::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ElectionTest : public testing::Test {
 protected:
  static Election Make(const std::string& identity) { return {{.identity = identity}, 7}; }
  Moment Now() const { return Moment::Of(clock); }
  static LeaseRecord Sent(const ElectionStep& step) { return std::get<WriteLease>(step).record; }
  static bool Waits(const ElectionStep& step) { return std::holds_alternative<WaitForLease>(step); }
  LeaseRecord HeldBy(const std::string& holder, int renewal = 1, std::uint64_t transitions = 3) {
    return {.holder = holder,
            .duration_seconds = 15,
            .acquire_time = "then",
            .renew_time = std::to_string(renewal),
            .transitions = transitions};
  }
  // Makes it the leader by way of a Lease that nobody holds.
  void Lead(Election& election) {
    const ElectionStep step = election.OnRead(HeldBy("", 0), Now());
    ASSERT_TRUE(std::holds_alternative<WriteLease>(step));
    election.OnWritten(Now());
    ASSERT_TRUE(election.LeadsFor(Now()).has_value());
  }

  ManualClock clock;
  Election a = Make("a");
};

TEST_F(ElectionTest, MakesTheLeaseIfThereIsNone) {
  EXPECT_TRUE(std::holds_alternative<ReadLease>(a.Next(Now())));
  const ElectionStep step = a.OnRead(std::nullopt, Now());
  EXPECT_TRUE(std::get<WriteLease>(step).create);
  EXPECT_EQ(Sent(step), (LeaseRecord{.holder = "a",
                                     .duration_seconds = 15,
                                     .acquire_time = "2027-01-15T08:00:01.000000Z",
                                     .renew_time = "2027-01-15T08:00:01.000000Z",
                                     .transitions = 1}));
  EXPECT_FALSE(a.LeadsFor(Now()).has_value());  // Not before it is written.
  a.OnWritten(Now());
  EXPECT_EQ(a.LeadsFor(Now()), seconds(10));
  EXPECT_EQ(a.term(), 1U);
}

TEST_F(ElectionTest, WhoDoesNotLeadWaitsAndLooksAgain) {
  EXPECT_TRUE(Waits(a.OnRead(HeldBy("b"), Now())));
  EXPECT_TRUE(std::holds_alternative<ReadLease>(a.Next(Now())));
  EXPECT_FALSE(a.LeadsFor(Now()).has_value());
  EXPECT_FALSE(a.Lost(Now()));
}

TEST_F(ElectionTest, FollowersWaitOneTo2Point2Periods) {
  for (int i = 0; i < 100; ++i) {
    const Duration wait = std::get<WaitForLease>(a.OnRead(HeldBy("b"), Now())).wait;
    EXPECT_GE(wait, seconds(2));
    EXPECT_LE(wait, milliseconds(4400));
  }
}

TEST_F(ElectionTest, TakesALeaseThatHasNotChangedForItsDuration) {
  a.OnRead(HeldBy("b"), Now());
  clock.Advance(seconds(15) - Duration(1));
  EXPECT_TRUE(Waits(a.OnRead(HeldBy("b"), Now())));
  clock.Advance(Duration(1));
  const ElectionStep step = a.OnRead(HeldBy("b"), Now());
  EXPECT_EQ(Sent(step).holder, "a");
  EXPECT_EQ(Sent(step).transitions, 4U);
  EXPECT_FALSE(std::get<WriteLease>(step).create);
}

TEST_F(ElectionTest, OnlyChangeCountsNotWhatTheClocksOfOthersSay) {
  // The holder's clock is years off: its times are text.
  LeaseRecord record = HeldBy("b");
  record.renew_time = "1999-01-01T00:00:00.000000Z";
  for (int i = 0; i < 10; ++i) {
    record.renew_time += "0";  // It renews.
    clock.Advance(seconds(10));
    EXPECT_TRUE(Waits(a.OnRead(record, Now())));
  }
}

TEST_F(ElectionTest, TakesALeaseThatWasGivenBackAtOnce) {
  a.OnRead(HeldBy("b", 1), Now());
  EXPECT_EQ(Sent(a.OnRead(HeldBy("", 2), Now())).holder, "a");
}

TEST_F(ElectionTest, ALeaseOfAProcessBeforeUsInThisPodIsTakenWithANewTerm) {
  const ElectionStep step = a.OnRead(HeldBy("a", 1, 7), Now());
  EXPECT_EQ(Sent(step).transitions, 8U);
  EXPECT_EQ(a.Holder(Now()), "");
}

TEST_F(ElectionTest, RenewsEveryTwoSecondsWithoutReading) {
  Lead(a);
  const std::uint64_t term = a.term();
  for (int i = 0; i < 20; ++i) {
    clock.Advance(seconds(2));
    const ElectionStep step = a.Next(Now());
    EXPECT_EQ(Sent(step).transitions, term);
    EXPECT_EQ(Sent(step).acquire_time, "2027-01-15T08:00:01.000000Z");
    EXPECT_EQ(std::get<WaitForLease>(a.OnWritten(Now())).wait, seconds(2));
  }
  EXPECT_EQ(a.LeadsFor(Now()), seconds(10));
  EXPECT_EQ(a.term(), term);
}

TEST_F(ElectionTest, LosesTheLeadershipTenSecondsAfterTheLastGoodRenewalWasSent) {
  Lead(a);
  for (int i = 0; i < 4; ++i) {
    clock.Advance(seconds(2));
    a.Next(Now());
    EXPECT_TRUE(Waits(a.OnWriteFailed(WriteFailure::kOther)));
  }
  clock.Advance(seconds(2) - Duration(1));
  EXPECT_EQ(a.LeadsFor(Now()), Duration(1));
  EXPECT_FALSE(a.Lost(Now()));
  clock.Advance(Duration(1));
  EXPECT_FALSE(a.LeadsFor(Now()).has_value());
  EXPECT_TRUE(a.Lost(Now()));
}

TEST_F(ElectionTest, TheTimeOfARenewalStartsWhenItIsSent) {
  Lead(a);
  a.Next(Now());
  clock.Advance(seconds(4));  // Until the answer.
  a.OnWritten(Now());
  EXPECT_EQ(a.LeadsFor(Now()), seconds(6));
}

TEST_F(ElectionTest, AFrozenLeaderHasLostBeforeItDoesAnything) {
  Lead(a);
  a.Next(Now());
  clock.Advance(seconds(60));  // Stopped between the request and its answer.
  EXPECT_FALSE(a.LeadsFor(Now()).has_value());
  a.OnWritten(Now());  // The answer was in the socket.
  EXPECT_FALSE(a.LeadsFor(Now()).has_value());
  EXPECT_TRUE(a.Lost(Now()));
}

TEST_F(ElectionTest, AProcessThatWasFrozenWhileItTookTheLeaseDoesNotLead) {
  a.OnRead(HeldBy("", 0), Now());
  clock.Advance(seconds(10));
  a.OnWritten(Now());
  EXPECT_FALSE(a.LeadsFor(Now()).has_value());
  EXPECT_FALSE(a.Lost(Now()));  // It never led: it tries again.
}

TEST_F(ElectionTest, AMachineThatSleptHasLostThoughItsMonotonicClockStoodStill) {
  Lead(a);
  Moment later = Now();
  later.unix_seconds += 3600;
  EXPECT_FALSE(a.LeadsFor(later).has_value());
  EXPECT_TRUE(a.Lost(later));
}

TEST_F(ElectionTest, AWallClockThatIsSetBackGivesNoTime) {
  Lead(a);
  clock.Advance(seconds(9));
  Moment back = Now();
  back.unix_seconds -= 3600;
  EXPECT_EQ(a.LeadsFor(back), seconds(1));
}

TEST_F(ElectionTest, AConflictIsLookedAt) {
  Lead(a);
  clock.Advance(seconds(2));
  a.Next(Now());
  EXPECT_TRUE(std::holds_alternative<ReadLease>(a.OnWriteFailed(WriteFailure::kConflict)));
  // Somebody has labelled it: still ours.
  EXPECT_EQ(Sent(a.OnRead(HeldBy("a", 5, a.term()), Now())).transitions, a.term());
  EXPECT_TRUE(a.LeadsFor(Now()).has_value());
}

TEST_F(ElectionTest, ALeaseThatAnotherHasTakenIsLostAtOnce) {
  Lead(a);
  clock.Advance(seconds(2));
  a.Next(Now());
  a.OnWriteFailed(WriteFailure::kConflict);
  a.OnRead(HeldBy("b", 9), Now());
  EXPECT_TRUE(a.Lost(Now()));
  EXPECT_EQ(a.Holder(Now()), "b");
}

TEST_F(ElectionTest, ALeaseThatWasDeletedIsLost) {
  Lead(a);
  a.OnWriteFailed(WriteFailure::kConflict);
  a.OnRead(std::nullopt, Now());
  EXPECT_TRUE(a.Lost(Now()));
}

TEST_F(ElectionTest, WhoLosesTheRaceForTheLeaseWaits) {
  a.OnRead(HeldBy(""), Now());
  EXPECT_TRUE(Waits(a.OnWriteFailed(WriteFailure::kConflict)));
  EXPECT_FALSE(a.LeadsFor(Now()).has_value());
}

TEST_F(ElectionTest, ToldWhoLeadsAsLongAsTheLeaseLasts) {
  EXPECT_EQ(a.Holder(Now()), "");
  a.OnRead(HeldBy("b"), Now());
  EXPECT_EQ(a.Holder(Now()), "b");
  clock.Advance(seconds(15));
  EXPECT_EQ(a.Holder(Now()), "");
  Lead(a);
  EXPECT_EQ(a.Holder(Now()), "a");
}

TEST_F(ElectionTest, WhoResignsLeadsNoMoreAndHasLostNothing) {
  Lead(a);
  a.Resign();
  EXPECT_FALSE(a.LeadsFor(Now()).has_value());
  EXPECT_FALSE(a.Lost(Now()));
}

TEST_F(ElectionTest, AnAnswerThatComesAfterTheEndBeginsNoLeadershipOfTheSameTerm) {
  Lead(a);
  clock.Advance(seconds(9));
  ASSERT_TRUE(std::holds_alternative<WriteLease>(a.Next(Now())));  // its answer takes two seconds
  clock.Advance(seconds(2));
  ASSERT_TRUE(a.Lost(Now()));
  EXPECT_EQ(a.LostSince(Now()), seconds(1));
  a.Resign();
  a.OnWritten(Now());
  EXPECT_FALSE(a.LeadsFor(Now()).has_value());
  EXPECT_TRUE(std::holds_alternative<ReadLease>(a.Next(Now())));
}

// A world of candidates, one Lease with versions, delays, failures and freezes: two never lead at
// one moment, and terms only rise.
class ElectionWorld {
 public:
  explicit ElectionWorld(std::uint64_t seed) : random_(seed), candidates_(3) {
    for (Candidate& candidate : candidates_)
      Restart(candidate);
  }

  void Run(int steps) {
    for (int i = 0; i < steps; ++i) {
      clock_.Advance(milliseconds(random_.Below(400)));
      Candidate& candidate = candidates_[random_.Below(candidates_.size())];
      if (random_.Below(400) == 0)
        candidate.frozen_until = clock_.Now() + seconds(random_.Below(40));
      if (clock_.Now() >= candidate.frozen_until && clock_.Now() >= candidate.due) Step(candidate);
      Check();
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_GT(leaderships_, steps / 4000);
  }

 private:
  struct Candidate {
    std::optional<Election> election;
    MonotonicTime due;
    MonotonicTime frozen_until;
    std::optional<WriteLease> writing;
    std::uint64_t version = 0;  // that it has read or written
    std::uint64_t led_term = 0;
  };

  Moment Now() const { return Moment::Of(clock_); }

  void Restart(Candidate& candidate) {
    candidate.election.emplace(ElectionOptions{.identity = "p" + std::to_string(++processes_)},
                               random_.Next());
    candidate.writing.reset();
  }

  // Half of all answers take until the candidate's next turn, so that it may freeze in between.
  void Step(Candidate& candidate) {
    if (candidate.election->Lost(Now())) {
      if (candidate.election->LostSince(Now()) > seconds(5)) {
        Restart(candidate);  // it was frozen
      } else {
        candidate.election->Resign();
      }
    }
    if (candidate.writing) {
      const WriteLease write = *std::exchange(candidate.writing, std::nullopt);
      const bool reached = random_.Below(10) != 0;
      const bool current = candidate.version == version_ && write.create == !lease_.has_value();
      if (reached && current) {
        lease_ = write.record;
        candidate.version = ++version_;
        return Take(candidate, candidate.election->OnWritten(Now()));
      }
      return Take(candidate, candidate.election->OnWriteFailed(reached ? WriteFailure::kConflict
                                                                       : WriteFailure::kOther));
    }
    Take(candidate, candidate.election->Next(Now()));
  }

  void Take(Candidate& candidate, const ElectionStep& step) {
    if (const auto* wait = std::get_if<WaitForLease>(&step)) {
      candidate.due = clock_.Now() + wait->wait;
    } else if (const auto* write = std::get_if<WriteLease>(&step)) {
      candidate.writing = *write;
    } else if (random_.Below(10) == 0) {
      Take(candidate, candidate.election->OnReadFailed());
    } else {
      candidate.version = version_;
      Take(candidate, candidate.election->OnRead(lease_, Now()));
    }
  }

  void Check() {
    int leaders = 0;
    for (Candidate& candidate : candidates_) {
      if (!candidate.election->LeadsFor(Now())) continue;
      ++leaders;
      if (candidate.led_term == candidate.election->term()) continue;
      candidate.led_term = candidate.election->term();
      ASSERT_GT(candidate.led_term, highest_term_);
      highest_term_ = candidate.led_term;
      ++leaderships_;
    }
    ASSERT_LE(leaders, 1);
  }

  Random random_;
  ManualClock clock_;
  std::vector<Candidate> candidates_;
  std::optional<LeaseRecord> lease_;
  std::uint64_t version_ = 0;
  std::uint64_t highest_term_ = 0;
  int leaderships_ = 0;
  int processes_ = 0;
};

TEST(ElectionProperty, TwoNeverLeadAtATimeAndTermsRise) {
  const std::uint64_t seed = TestSeed(3);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  for (std::uint64_t i = 0; i < 5; ++i)
    ElectionWorld(seed + i).Run(20'000);
}

}  // namespace
}  // namespace optcache::kube
