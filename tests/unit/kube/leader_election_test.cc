#include "kube/leader_election.h"

#include <vector>

#include "kube/fenced_client.h"
#include "support/growing_deadline.h"
#include "support/manual_clock.h"
#include "unit/kube/api_fixture.h"

namespace optcache::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const ObjectKey kLease = {.ns = "optcache-system", .name = "optcache-operator"};

constexpr Duration kLeaseDuration = seconds(120);
constexpr Duration kRenewDeadline = seconds(100);
// Less than a renewal may take.
constexpr Duration kPartOfLease = seconds(80);

// A candidate whose lease goes by a clock that the test moves. Its timers are real and short.
struct Candidate {
  Candidate(net::EventLoop& loop, Client& client, const std::string& identity, const Clock& clock,
            Duration lease_duration = kLeaseDuration, Duration renew_deadline = kRenewDeadline)
      : elector(loop, clock, client,
                {.lease = kLease,
                 .identity = identity,
                 .lease_duration = lease_duration,
                 .renew_deadline = renew_deadline,
                 .retry_period = milliseconds(50)},
                {.on_started =
                     [this](std::uint64_t term) {
                       terms.push_back(term);
                       if (on_started) on_started();
                     },
                 .on_stopped =
                     [this](LeadershipEnd end, const std::string& why) {
                       ends.push_back(end);
                       stopped.push_back(why);
                     },
                 .on_leader =
                     [this](const std::string& leader) {
                       leaders.push_back(leader);
                       if (on_leader) on_leader();
                     }}) {}

  std::vector<std::uint64_t> terms;
  std::vector<LeadershipEnd> ends;
  std::vector<std::string> stopped;
  std::vector<std::string> leaders;
  std::function<void()> on_started;
  std::function<void()> on_leader;
  LeaderElector elector;
};

class LeaderElectionTest : public ApiFixture {
 protected:
  Candidate& Add(const std::string& identity) {
    candidates.push_back(std::make_unique<Candidate>(loop, *client, identity, clock));
    candidates.back()->elector.Start();
    return *candidates.back();
  }
  // Until the leader has renewed its lease at the time that it is. Of the requests from now on, the
  // first may have been sent before, two may fail, and the last may not have been answered.
  void RunUntilRenewed() {
    const std::size_t before = server.Count("update", "leases");
    RunUntil([&] { return server.Count("update", "leases") >= before + 6; });
  }
  // Until who waits has seen the lease as it is: likewise.
  void RunUntilSeen() {
    const std::size_t before = server.Count("get", "leases");
    RunUntil([&] { return server.Count("get", "leases") >= before + 3; });
  }
  Json Spec() { return server.Find(kLeases, kLease)["spec"]; }

  ManualClock clock;
  std::vector<std::unique_ptr<Candidate>> candidates;
};

TEST_F(LeaderElectionTest, TheFirstMakesTheLeaseAndLeads) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  EXPECT_EQ(a.terms, std::vector<std::uint64_t>{1});
  EXPECT_EQ(a.elector.term(), 1U);
  EXPECT_EQ(a.elector.leader(), "a");
  EXPECT_EQ(a.leaders, std::vector<std::string>{"a"});
  EXPECT_TRUE(a.elector.WritesUntil().has_value());
  const Json spec = Spec();
  EXPECT_EQ(spec["holderIdentity"], "a");
  EXPECT_EQ(spec["leaseDurationSeconds"], 120);
  EXPECT_EQ(spec["leaseTransitions"], 1);
}

TEST_F(LeaderElectionTest, TheOtherWaitsAndKnowsWhoLeads) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  Candidate& b = Add("b");
  RunUntil([&] { return b.elector.leader() == "a"; });
  for (int i = 0; i < 3; ++i) {  // longer than the lease: it is renewed
    clock.Advance(kPartOfLease);
    RunUntilRenewed();
    RunUntilSeen();
  }
  EXPECT_TRUE(a.elector.IsLeader());
  EXPECT_FALSE(b.elector.IsLeader());
  EXPECT_FALSE(b.elector.WritesUntil().has_value());
  EXPECT_EQ(b.leaders, std::vector<std::string>{"a"});
}

TEST_F(LeaderElectionTest, GivenBackItIsTakenAtOnceWithAHigherTerm) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  Candidate& b = Add("b");
  RunUntil([&] { return b.elector.leader() == "a"; });
  bool released = false;
  a.elector.Stop(minutes(1), [&] { released = true; });
  EXPECT_FALSE(a.elector.IsLeader());                          // At once.
  RunUntil([&] { return b.elector.IsLeader() && released; });  // The clock stands still.
  EXPECT_EQ(b.elector.term(), 2U);
  EXPECT_TRUE(a.stopped.empty());
}

TEST_F(LeaderElectionTest, WhoIsSilentIsSucceededAfterTheLease) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  Candidate& b = Add("b");
  RunUntil([&] { return b.elector.leader() == "a"; });
  candidates.front().reset();  // Killed.
  clock.Advance(kLeaseDuration - seconds(1));
  RunUntilSeen();
  EXPECT_FALSE(b.elector.IsLeader());
  clock.Advance(seconds(2));
  RunUntil([&] { return b.elector.IsLeader(); });
  EXPECT_EQ(b.elector.term(), 2U);
}

TEST_F(LeaderElectionTest, ALeaderThatCannotRenewStopsBeforeAnyoneElseCanLead) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  server.Stop();
  clock.Advance(kRenewDeadline - seconds(1));
  RunFor(milliseconds(100));
  EXPECT_TRUE(a.elector.IsLeader());
  clock.Advance(seconds(2));
  EXPECT_FALSE(a.elector.IsLeader());
  RunUntil([&] { return !a.stopped.empty(); });
  EXPECT_EQ(a.stopped, std::vector<std::string>{
                           "the lease optcache-system/optcache-operator could not be renewed in "
                           "time"});
}

TEST_F(LeaderElectionTest, AfterAnOutageItLeadsAgainWithAnotherTerm) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  server.Stop();
  clock.Advance(kRenewDeadline + seconds(1));
  RunUntil([&] { return !a.stopped.empty(); });
  EXPECT_EQ(a.ends, std::vector<LeadershipEnd>{LeadershipEnd::kNotRenewed});
  clock.Advance(kLeaseDuration);
  RunFor(milliseconds(200));
  EXPECT_FALSE(a.elector.IsLeader());
  server.Start();
  RunUntil([&] { return a.elector.IsLeader(); });
  EXPECT_EQ(a.terms, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(Spec()["leaseTransitions"], 2);
}

TEST_F(LeaderElectionTest, WhoseLeaseIsTakenFollows) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  server.store([](FakeApiStore& store) {
    Json lease = store.Find(kLeases, kLease);
    lease["spec"]["holderIdentity"] = "b";
    store.Put(kLeases, lease);
  });
  RunUntil([&] { return a.elector.leader() == "b"; });
  EXPECT_EQ(a.ends, std::vector<LeadershipEnd>{LeadershipEnd::kNotRenewed});
  clock.Advance(kLeaseDuration + seconds(1));  // "b" never renews.
  RunUntil([&] { return a.elector.IsLeader(); });
  EXPECT_EQ(a.terms, (std::vector<std::uint64_t>{1, 2}));
}

TEST_F(LeaderElectionTest, ARenewalThatHangsIsTriedOnceMore) {
  EXPECT_TRUE(HoldsForSomeDeadline(milliseconds(1200), [&](Duration renew_deadline) {
    const Duration lease_duration = 2 * renew_deadline;
    Candidate a(loop, *client, "a", SystemClock(), lease_duration, renew_deadline);
    a.elector.Start();
    RunUntil([&] { return !a.terms.empty(); });
    server.FailNext("update", "leases", {.kind = FakeFault::Kind::kStall});
    RunFor(2 * renew_deadline);
    return a.elector.IsLeader() && a.stopped.empty();
  }));
}

TEST_F(LeaderElectionTest, AShortOutageEndsNothing) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  server.Stop();
  RunFor(milliseconds(300));
  clock.Advance(kPartOfLease);
  server.Start();
  RunUntilRenewed();
  clock.Advance(kPartOfLease);
  EXPECT_TRUE(a.elector.IsLeader());
  EXPECT_TRUE(a.stopped.empty());
}

TEST_F(LeaderElectionTest, AnAnswerThatIsLostIsNoLostLease) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  // The write has happened: the next one conflicts with our own.
  server.FailNext("update", "leases", {.kind = FakeFault::Kind::kLoseAnswer});
  clock.Advance(kPartOfLease);
  RunUntilRenewed();
  clock.Advance(kPartOfLease);
  EXPECT_TRUE(a.elector.IsLeader());
  EXPECT_EQ(a.elector.term(), 1U);
}

TEST_F(LeaderElectionTest, AFrozenLeaderWritesNothingAfterItWakes) {
  Candidate& a = Add("a");
  // The process stands still for longer than its lease lasts; its first turn after that is a write.
  // No request is under way then.
  a.on_started = [&] { clock.Advance(2 * kLeaseDuration); };
  RunUntil([&] { return !a.terms.empty(); });
  FencedClient fenced(*client, [&] { return a.elector.WritesUntil(); });
  server.ForgetRequests();
  const auto write = Wait([&](auto done) { fenced.Create(kPods, Pod("x"), done); });
  EXPECT_EQ(write.error().status.code(), Code::kCancelled);
  EXPECT_EQ(server.Count("create"), 0U);
  RunUntil([&] { return !a.stopped.empty(); });
  EXPECT_EQ(server.Count("update", "leases"), 0U);  // Not even a renewal.
  EXPECT_EQ(a.ends, std::vector<LeadershipEnd>{LeadershipEnd::kFrozen});
  RunFor(milliseconds(500));  // The election is over for this process.
  EXPECT_EQ(server.Count("", "leases"), 0U);
}

TEST_F(LeaderElectionTest, KeepsWhatOthersHaveWrittenToTheLease) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  server.store([](FakeApiStore& store) {
    Json lease = store.Find(kLeases, kLease);
    lease["metadata"]["labels"]["by"] = "hand";
    store.Put(kLeases, lease);
  });
  clock.Advance(kPartOfLease);
  RunUntilRenewed();
  clock.Advance(kPartOfLease);
  EXPECT_TRUE(a.elector.IsLeader());
  EXPECT_EQ(LabelOf(server.Find(kLeases, kLease), "by"), "hand");
}

TEST_F(LeaderElectionTest, StopWithoutLeadingIsDoneAtOnce) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  Candidate& b = Add("b");
  bool released = false;
  b.elector.Stop(minutes(1), [&] { released = true; });
  RunUntil([&] { return released; });
  EXPECT_EQ(Spec()["holderIdentity"], "a");
}

TEST_F(LeaderElectionTest, StoppedWhenItHearsThatItLeadsItDoesNotBegin) {
  Candidate a(loop, *client, "a", clock);
  bool released = false;
  a.on_leader = [&] { a.elector.Stop(minutes(2), [&] { released = true; }); };
  a.elector.Start();
  RunUntil([&] { return released; });
  EXPECT_EQ(a.leaders, std::vector<std::string>{"a"});
  EXPECT_TRUE(a.terms.empty());
  EXPECT_EQ(Spec()["holderIdentity"], "");
}

TEST_F(LeaderElectionTest, StopTakesNoLongerThanItMay) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  server.FailNext("update", "leases", {.kind = FakeFault::Kind::kStall}, 10);
  bool released = false;
  a.elector.Stop(milliseconds(100), [&] { released = true; });
  RunUntil([&] { return released; });
  EXPECT_FALSE(a.elector.IsLeader());
}

TEST_F(LeaderElectionTest, SaysWhetherItLeadsAsAMetric) {
  Candidate& a = Add("a");
  const auto status = [&] {
    double found = -1;
    a.elector.VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
          EXPECT_EQ(name, "leader_election_master_status");
          EXPECT_EQ(labels.front().second, "optcache-system/optcache-operator");
          found = value;
        });
    return found;
  };
  EXPECT_EQ(status(), 0);
  RunUntil([&] { return a.elector.IsLeader(); });
  EXPECT_EQ(status(), 1);
}

}  // namespace
}  // namespace optcache::kube
