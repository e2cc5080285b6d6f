// Streams whose training processes hand over lists of what they read.

#include <gtest/gtest.h>

#include "sampler/id_list.h"
#include "unit/coordinator/scenario.h"

namespace optcache::coordination {
namespace {

constexpr std::uint32_t kRanks = 2;
constexpr std::uint64_t kLength = 100;  // of a rank's list

// Two ranks on two nodes, with lists.
class TracesTest : public testing::Test {
 protected:
  static const std::string& NodeOf(Rank rank) {
    static const std::string kNames[] = {"a", "b"};
    return kNames[rank];
  }
  RankReport& At(Rank rank) {
    RankReport& report = scenario_.At(NodeOf(rank), rank, kRanks);
    report.recipe.known = false;
    return report;
  }
  // What that rank reads in that pass.
  std::string List(Rank rank, PassNumber pass, std::uint32_t change = 0) const {
    std::vector<SampleId> ids;
    for (std::uint64_t i = 0; i < kLength; ++i)
      ids.push_back(static_cast<SampleId>((i * 7 + rank * 13 + pass * 101 + change) % 1000));
    return sampler::EncodeList(ids, sampler::BitsFor(1000));
  }
  void Name(Rank rank, PassNumber pass, std::uint32_t change = 0) {
    const std::string list = List(rank, pass, change);
    PassTrace trace{.pass = pass, .length = kLength, .digest = DigestHex(list)};
    lists_[trace.digest] = list;
    auto& traces = At(rank).traces;
    std::erase_if(traces, [pass](const PassTrace& old) { return old.pass == pass; });
    traces.push_back(std::move(trace));
  }
  void NameAll(PassNumber pass) {
    for (Rank rank = 0; rank < kRanks; ++rank)
      Name(rank, pass);
  }
  // All nodes report and send what they are asked for.
  void Exchange() {
    for (Rank rank = 0; rank < kRanks; ++rank) {
      Report& report = scenario_.Node(NodeOf(rank));
      const auto answer = scenario_.coordinator().OnReport(report, scenario_.now());
      ASSERT_TRUE(answer.has_value());
      report.member = answer->member;
      for (const std::string& digest : answer->traces_wanted) {
        ++sent_;
        EXPECT_TRUE(scenario_.coordinator().OnTrace(report.node, digest, lists_.at(digest)).ok());
      }
    }
  }
  void Plan() {
    Exchange();
    scenario_.Plan();
  }
  void Begin(PassNumber pass) {
    for (Rank rank = 0; rank < kRanks; ++rank) {
      RankReport& report = At(rank);
      report.pass = pass;
      report.epoch = pass;
      report.position = rank;
      std::erase_if(report.traces, [pass](const PassTrace& old) { return old.pass < pass; });
    }
  }
  bool OrderKnown() {
    return scenario_.coordinator().Snapshot(scenario_.now()).datasets[0].streams[0].order_known;
  }
  std::vector<PassNumber> Planned() const {
    std::vector<PassNumber> passes;
    for (const PassTrace& trace : scenario_.stream().traces)
      passes.push_back(trace.pass);
    return passes;
  }

  Scenario scenario_;
  std::map<std::string, std::string> lists_;
  int sent_ = 0;
};

TEST_F(TracesTest, APassIsPlannedOnceAllOfItsListsAreHere) {
  Name(0, 0);
  At(1);
  Plan();
  EXPECT_TRUE(Planned().empty());
  EXPECT_FALSE(HasOrder(scenario_.stream()));
  const Version before = scenario_.dataset().planned;
  Name(1, 0);
  Plan();
  ASSERT_EQ(Planned(), std::vector<PassNumber>{0});
  EXPECT_GT(scenario_.dataset().planned, before);
  EXPECT_EQ(scenario_.stream().traces[0].length, kRanks * kLength);
  const auto bytes = scenario_.coordinator().TraceBytes(scenario_.stream().traces[0].digest);
  ASSERT_NE(bytes, nullptr);
  EXPECT_TRUE(sampler::ParseLists(*bytes, 1000).has_value());
  EXPECT_EQ(sent_, 2) << "each once";
  EXPECT_TRUE(OrderKnown());
}

TEST_F(TracesTest, EachListThatComesAsksForAPlanAndNoneThatEndsDoes) {
  for (const PassNumber pass : {0U, 1U})
    NameAll(pass);
  Plan();
  EXPECT_EQ(Planned(), (std::vector<PassNumber>{0, 1}));
  const Version first = scenario_.dataset().planned;
  Begin(1);
  Plan();
  EXPECT_EQ(scenario_.dataset().planned, first);
  NameAll(2);
  Plan();
  EXPECT_GT(scenario_.dataset().planned, first);
  EXPECT_EQ(Planned(), (std::vector<PassNumber>{1, 2}));
  EXPECT_EQ(scenario_.stream().cut, (Cut{1, 1})) << "the pass had verdicts";
}

TEST_F(TracesTest, WhatWasReadBeforeTheListCameGetsItsDecisionsLater) {
  NameAll(0);
  Plan();
  Begin(1);
  for (Rank rank = 0; rank < kRanks; ++rank)
    At(rank).position = 40 + rank;
  NameAll(1);
  Plan();
  EXPECT_EQ(Planned(), std::vector<PassNumber>{1});
  EXPECT_EQ(scenario_.stream().cut, (Cut{1, 0}));
}

TEST_F(TracesTest, AStreamWhoseFirstPassHasNoListIsCutWhereItsListsBegin) {
  At(0);
  At(1);
  NameAll(1);
  Plan();
  EXPECT_EQ(Planned(), std::vector<PassNumber>{1});
  EXPECT_EQ(scenario_.stream().cut, (Cut{1, 0}));
}

TEST_F(TracesTest, AListInPlaceOfAnotherIsPlannedAnew) {
  NameAll(0);
  NameAll(1);
  Plan();
  const std::string before = scenario_.stream().traces.at(1).digest;
  Name(0, 1, 5);
  Plan();
  ASSERT_EQ(Planned(), (std::vector<PassNumber>{0, 1}));
  EXPECT_NE(scenario_.stream().traces[1].digest, before);
}

TEST_F(TracesTest, WhoReadsSomethingElseIsNotPlannedUntilItDoesAgain) {
  NameAll(0);
  NameAll(1);
  Plan();
  At(1).order_known = false;
  Plan();
  EXPECT_FALSE(HasOrder(scenario_.stream()));
  Begin(1);
  At(1).order_known = true;
  Plan();
  EXPECT_EQ(Planned(), std::vector<PassNumber>{1});
}

TEST_F(TracesTest, TheEndOfAPassIsThatOfItsList) {
  NameAll(0);
  NameAll(1);
  for (Rank rank = 0; rank < kRanks; ++rank)
    At(rank).position = kRanks * kLength + rank;
  Plan();
  EXPECT_EQ(scenario_.stream().cut, (Cut{0, 0})) << "the first plan begins where the stream began";
  NameAll(2);
  Plan();
  EXPECT_EQ(scenario_.stream().cut, (Cut{1, 0}));
}

TEST_F(TracesTest, ListsThatNobodyNamedAreNotTaken) {
  NameAll(0);
  Exchange();
  Coordinator& coordinator = scenario_.coordinator();
  const std::string list = List(0, 9);
  EXPECT_EQ(coordinator.OnTrace("a", DigestHex(list), list).code(), Code::kConflict);
  const std::string named = At(0).traces[0].digest;
  Name(0, 1);
  scenario_.Second();
  const std::string next = At(0).traces[1].digest;
  EXPECT_EQ(coordinator.OnTrace("b", next, lists_.at(next)).code(), Code::kConflict)
      << "it is another's";
  EXPECT_EQ(coordinator.OnTrace("nobody", next, lists_.at(next)).code(), Code::kConflict);
  EXPECT_EQ(coordinator.OnTrace("a", next, std::string(kMaxTraceBytes + 1, 'x')).code(),
            Code::kResourceExhausted);
  EXPECT_TRUE(coordinator.OnTrace("a", next, lists_.at(next)).ok());
  EXPECT_EQ(coordinator.OnTrace("a", next, lists_.at(next)).code(), Code::kConflict) << "twice";
  Name(0, 2);
  const std::string third = At(0).traces[2].digest;
  const auto wanted = [&] {
    return coordinator.OnReport(scenario_.Node("a"), scenario_.now())->traces_wanted;
  };
  EXPECT_EQ(wanted(), std::vector{third});
  EXPECT_EQ(coordinator.OnTrace("a", third, lists_.at(named)).code(), Code::kInvalidArgument);
  EXPECT_TRUE(wanted().empty()) << "nobody asks again for what is no list";
}

TEST_F(TracesTest, AnEndedStreamLeavesNoLists) {
  NameAll(0);
  Plan();
  const std::string digest = scenario_.stream().traces.at(0).digest;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    At(rank).ended = true;
    At(rank).traces.clear();
  }
  Exchange();
  EXPECT_TRUE(OrderKnown()) << "it read what they said";
  scenario_.Plan();
  scenario_.Plan();
  EXPECT_EQ(scenario_.coordinator().TraceBytes(digest), nullptr);
}

TEST_F(TracesTest, AnEndedStreamThatReadSomethingElseWasNotPredicted) {
  NameAll(0);
  Begin(0);
  Plan();
  for (Rank rank = 0; rank < kRanks; ++rank) {
    At(rank).order_known = rank == 0;
    At(rank).ended = true;
    At(rank).traces.clear();
  }
  Exchange();
  EXPECT_FALSE(OrderKnown());
}

// A coordinator that takes over knows what nodes tell it, and asks for the lists again.
TEST_F(TracesTest, ASuccessorAsksForThemAgain) {
  NameAll(0);
  Plan();
  Scenario after;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    after.Node(NodeOf(rank)) = scenario_.Node(NodeOf(rank));
    after.Node(NodeOf(rank)).applied = {};
  }
  const auto answer = after.coordinator().OnReport(after.Node("a"), after.now());
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->traces_wanted, std::vector{At(0).traces[0].digest});
}

}  // namespace
}  // namespace optcache::coordination
