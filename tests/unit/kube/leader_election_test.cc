#include "kube/leader_election.h"

#include <vector>

#include "kube/fenced_client.h"
#include "support/manual_clock.h"
#include "unit/kube/api_fixture.h"

namespace optcache::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const ObjectKey kLease = {.ns = "optcache-system", .name = "optcache-operator"};

// A candidate with its own view of time, so that it can be frozen. Timers are real and short.
struct Candidate {
  Candidate(net::EventLoop& loop, Client& client, const std::string& identity, const Clock& clock)
      : elector(loop, clock, client,
                {.lease = kLease,
                 .identity = identity,
                 .lease_duration = seconds(2),
                 .renew_deadline = milliseconds(1200),
                 .retry_period = milliseconds(50)},
                {.on_started = [this](std::uint64_t term) { terms.push_back(term); },
                 .on_stopped =
                     [this](LeadershipEnd end, const std::string& why) {
                       ends.push_back(end);
                       stopped.push_back(why);
                     },
                 .on_leader = [this](const std::string& leader) { leaders.push_back(leader); }}) {}

  std::vector<std::uint64_t> terms;
  std::vector<LeadershipEnd> ends;
  std::vector<std::string> stopped;
  std::vector<std::string> leaders;
  LeaderElector elector;
};

class LeaderElectionTest : public ApiFixture {
 protected:
  Candidate& Add(const std::string& identity, const Clock& clock = SystemClock()) {
    candidates.push_back(std::make_unique<Candidate>(loop, *client, identity, clock));
    candidates.back()->elector.Start();
    return *candidates.back();
  }
  Json Spec() { return server.Find(kLeases, kLease)["spec"]; }

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
  EXPECT_EQ(spec["leaseDurationSeconds"], 2);
  EXPECT_EQ(spec["leaseTransitions"], 1);
}

TEST_F(LeaderElectionTest, TheOtherWaitsAndKnowsWhoLeads) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  Candidate& b = Add("b");
  RunUntil([&] { return b.elector.leader() == "a"; });
  RunFor(seconds(3));  // Longer than the lease: it is renewed.
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
  const MonotonicTime begin = SystemClock().Now();
  bool released = false;
  a.elector.Stop(seconds(5), [&] { released = true; });
  EXPECT_FALSE(a.elector.IsLeader());  // At once.
  RunUntil([&] { return b.elector.IsLeader(); });
  EXPECT_TRUE(released);
  EXPECT_LT(SystemClock().Now() - begin, seconds(2));
  EXPECT_EQ(b.elector.term(), 2U);
  EXPECT_TRUE(a.stopped.empty());
}

TEST_F(LeaderElectionTest, WhoIsSilentIsSucceededAfterTheLease) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  Candidate& b = Add("b");
  RunUntil([&] { return b.elector.leader() == "a"; });
  candidates.front().reset();  // Killed.
  const MonotonicTime begin = SystemClock().Now();
  RunUntil([&] { return b.elector.IsLeader(); });
  EXPECT_GE(SystemClock().Now() - begin, milliseconds(1500));
  EXPECT_EQ(b.elector.term(), 2U);
}

TEST_F(LeaderElectionTest, ALeaderThatCannotRenewStopsBeforeAnyoneElseCanLead) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  server.Stop();
  const MonotonicTime begin = SystemClock().Now();
  RunUntil([&] { return !a.stopped.empty(); });
  EXPECT_LT(SystemClock().Now() - begin, seconds(2));
  EXPECT_FALSE(a.elector.IsLeader());
  EXPECT_EQ(a.stopped, std::vector<std::string>{
                           "the lease optcache-system/optcache-operator could not be renewed in "
                           "time"});
}

TEST_F(LeaderElectionTest, AfterAnOutageItLeadsAgainWithAnotherTerm) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  server.Stop();
  RunUntil([&] { return !a.stopped.empty(); });
  EXPECT_EQ(a.ends, std::vector<LeadershipEnd>{LeadershipEnd::kNotRenewed});
  RunFor(seconds(2));
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
  RunUntil([&] { return a.elector.IsLeader(); });  // "b" never renews.
  EXPECT_EQ(a.terms, (std::vector<std::uint64_t>{1, 2}));
}

TEST_F(LeaderElectionTest, ARenewalThatHangsIsTriedOnceMore) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  server.FailNext("update", "leases", {.kind = FakeFault::Kind::kStall});
  RunFor(seconds(2));
  EXPECT_TRUE(a.elector.IsLeader());
}

TEST_F(LeaderElectionTest, AShortOutageEndsNothing) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  server.Stop();
  RunFor(milliseconds(300));
  server.Start();
  RunFor(seconds(2));
  EXPECT_TRUE(a.elector.IsLeader());
  EXPECT_TRUE(a.stopped.empty());
}

TEST_F(LeaderElectionTest, AnAnswerThatIsLostIsNoLostLease) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  // The write has happened: the next one conflicts with our own.
  server.FailNext("update", "leases", {.kind = FakeFault::Kind::kLoseAnswer});
  RunFor(seconds(2));
  EXPECT_TRUE(a.elector.IsLeader());
  EXPECT_EQ(a.elector.term(), 1U);
}

TEST_F(LeaderElectionTest, AFrozenLeaderWritesNothingAfterItWakes) {
  ManualClock frozen;
  Candidate& a = Add("a", frozen);
  RunUntil([&] { return a.elector.IsLeader(); });
  FencedClient fenced(*client, [&] { return a.elector.WritesUntil(); });
  // The process stands still for a minute; its first turn after that is a write.
  frozen.Advance(seconds(60));
  server.ForgetRequests();
  const auto write = Wait([&](auto done) { fenced.Create(kPods, Pod("x"), done); });
  EXPECT_EQ(write.error().status.code(), Code::kCancelled);
  EXPECT_EQ(server.Count("create"), 0U);
  RunUntil([&] { return !a.stopped.empty(); });
  EXPECT_EQ(server.Count("update", "leases"), 0U);  // Not even a renewal.
  EXPECT_EQ(a.ends, std::vector<LeadershipEnd>{LeadershipEnd::kFrozen});
  RunFor(seconds(1));  // The election is over for this process.
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
  RunFor(milliseconds(500));
  EXPECT_TRUE(a.elector.IsLeader());
  EXPECT_EQ(LabelOf(server.Find(kLeases, kLease), "by"), "hand");
}

TEST_F(LeaderElectionTest, StopWithoutLeadingIsDoneAtOnce) {
  Candidate& a = Add("a");
  RunUntil([&] { return a.elector.IsLeader(); });
  Candidate& b = Add("b");
  bool released = false;
  b.elector.Stop(seconds(5), [&] { released = true; });
  RunUntil([&] { return released; });
  EXPECT_EQ(Spec()["holderIdentity"], "a");
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
