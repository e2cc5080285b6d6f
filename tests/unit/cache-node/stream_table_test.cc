#include "cache-node/control/stream_table.h"

#include <limits>

#include <gtest/gtest.h>

#include "coordination/codec.h"
#include "coordination/plan_base.h"

namespace optcache::node {
namespace {

constexpr ClientId kSidecar = 1;
constexpr MonotonicTime kNow{std::chrono::hours(1)};

wire::StreamAttach Attach(Rank rank = 0, std::uint32_t world = 1) {
  return {.dataset = 3,
          .dataset_name = "default/images",
          .stream = 7,
          .stream_name = "train",
          .world = world,
          .rank = rank};
}

TEST(StreamTable, RefusesWhatNoReportCouldSay) {
  StreamTable table;
  for (const std::string& name : {std::string(), std::string(coordination::kMaxNameBytes + 1, 'x'),
                                  std::string("vision/job/\xc3")}) {
    wire::StreamAttach attach = Attach();
    attach.stream_name = name;
    EXPECT_EQ(table.OnAttach(kSidecar, attach).code(), Code::kInvalidArgument) << name.size();
  }
  wire::StreamAttach attach = Attach();
  attach.stream = 0;
  EXPECT_EQ(table.OnAttach(kSidecar, attach).code(), Code::kInvalidArgument);
}

TEST(StreamTable, ARankThatMayNotReadAnyMoreIsNotListed) {
  StreamTable table;
  for (const Rank rank : {0U, 1U})
    EXPECT_TRUE(table.OnAttach(kSidecar, Attach(rank, 2)).ok());
  const std::uint64_t changes = table.changes();
  table.OnRevoked(kSidecar + 1, 7, 0);
  EXPECT_EQ(table.changes(), changes) << "it is another's";
  table.OnRevoked(kSidecar, 7, 0);
  EXPECT_GT(table.changes(), changes);
  ASSERT_EQ(table.Report().size(), 1U);
  EXPECT_EQ(table.Report()[0].ranks.size(), 1U);
  table.OnRevoked(kSidecar, 7, 1);
  EXPECT_TRUE(table.Report().empty());
  EXPECT_FALSE(table.Reads(kSidecar, 7));
}

TEST(StreamTable, ARankHasReachedWhatWasServedAndNotOnlyWhatTheTrainerRead) {
  StreamTable table;
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach()).ok());
  EXPECT_EQ(table.Passes(7), std::nullopt) << "it has not begun";
  table.OnProgress(kSidecar, {.stream = 7, .pass = 3, .position = 10}, kNow);
  EXPECT_EQ(table.Passes(7)->lowest, 3U);
  table.OnServed(kSidecar, {.stream = 7, .items = {{3, 40, 1}, {3, 30, 2}}});
  ASSERT_EQ(table.Positions(3).size(), 1U);
  EXPECT_EQ(table.Positions(3)[0].next, (coordination::Cut{3, 41}));
}

TEST(StreamTable, WhatAnotherClientIsServedMovesNoRank) {
  StreamTable table;
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach(0, 2)).ok());
  ASSERT_TRUE(table.OnAttach(kSidecar + 1, Attach(1, 2)).ok());
  table.OnServed(kSidecar + 1, {.stream = 7, .items = {{1, 40, 1}, {1, 41, 2}}});
  table.OnServed(kSidecar + 2, {.stream = 7, .items = {{2, 40, 1}, {2, 41, 2}}});
  ASSERT_EQ(table.Positions(3).size(), 2U);
  EXPECT_EQ(table.Positions(3)[0].next, coordination::Cut());
  EXPECT_EQ(table.Positions(3)[1].next, (coordination::Cut{1, 42})) << "its own";
}

TEST(StreamTable, ARankReadsNoPassFarAheadOfItsProgress) {
  constexpr auto kLast = std::numeric_limits<PassNumber>::max();
  StreamTable table;
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach()).ok());
  EXPECT_TRUE(table.Reads(kSidecar, 7, kPassesAhead)) << "it has not said where it is";
  EXPECT_FALSE(table.Reads(kSidecar, 7, kPassesAhead + 1));
  table.OnProgress(kSidecar, {.stream = 7, .pass = 5}, kNow);
  EXPECT_TRUE(table.Reads(kSidecar, 7, 0));
  EXPECT_TRUE(table.Reads(kSidecar, 7, 5 + kPassesAhead));
  EXPECT_FALSE(table.Reads(kSidecar, 7, 5 + kPassesAhead + 1));
  EXPECT_FALSE(table.Reads(kSidecar, 7, kLast));
  EXPECT_FALSE(table.Reads(kSidecar + 1, 7, 5));
  table.OnProgress(kSidecar, {.stream = 7, .pass = kMaxPass}, kNow);
  EXPECT_TRUE(table.Reads(kSidecar, 7, kMaxPass));
}

TEST(StreamTable, APassThatNoJobReachesIsNotTaken) {
  StreamTable table;
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach()).ok());
  table.OnProgress(kSidecar, {.stream = 7, .pass = 5, .position = 10}, kNow);
  for (const PassNumber pass : {kMaxPass + 1, std::numeric_limits<PassNumber>::max()}) {
    table.OnProgress(kSidecar, {.stream = 7, .pass = pass}, kNow);
    const coordination::RankReport rank = table.Report().at(0).ranks.at(0);
    EXPECT_EQ(rank.pass, 5) << pass;
    EXPECT_EQ(rank.position, 10) << pass;
  }
}

TEST(StreamTable, TheFirstProgressOfARankIsAChangeAndMoreOfThePassIsNone) {
  StreamTable table;
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach()).ok());
  const std::uint64_t attached = table.changes();
  table.OnProgress(kSidecar, {.stream = 7, .pass = 0, .epoch = 0, .position = 0}, kNow);
  EXPECT_EQ(table.changes(), attached + 1) << "pass 0 of epoch 0 begins, too";
  table.OnProgress(kSidecar, {.stream = 7, .pass = 0, .epoch = 0, .position = 64}, kNow);
  EXPECT_EQ(table.changes(), attached + 1);
  table.OnProgress(kSidecar, {.stream = 7, .pass = 1, .epoch = 1, .position = 0}, kNow);
  EXPECT_EQ(table.changes(), attached + 2);
  EXPECT_EQ(table.Report().at(0).ranks.at(0).last_pass_end, 64U);
}

TEST(StreamTable, AStreamWhoseRanksHaveEndedBeginsANewLife) {
  StreamTable table;
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach(1, 2)).ok());
  table.OnProgress(kSidecar,
                   {.stream = 7, .rank = 1, .pass = 5, .epoch = 5, .position = 64, .ended = true},
                   kNow);
  EXPECT_EQ(table.Report().at(0).ranks.size(), 1U) << "so that the coordinator hears of the end";
  EXPECT_TRUE(table.Positions(3).empty());
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach(0, 2)).ok());
  ASSERT_EQ(table.Report().at(0).ranks.size(), 1U);
  EXPECT_EQ(table.Report().at(0).ranks.at(0).rank, 0U);
  EXPECT_EQ(table.Passes(7), std::nullopt);
}

TEST(StreamTable, ReportsHowFarPassesAreRead) {
  StreamTable table;
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach(0, 2)).ok());
  const auto reported = [&] { return table.Report().at(0).ranks.at(0).pass_reads; };
  EXPECT_EQ(reported(), 0U);
  const std::uint64_t changes = table.changes();
  table.OnPassEnd(kSidecar, {.stream = 7, .rank = 0, .reads = 5});
  table.OnPassEnd(kSidecar, {.stream = 7, .rank = 0, .reads = 5});
  EXPECT_EQ(table.changes(), changes + 1);
  EXPECT_EQ(reported(), 5U);
  table.OnPassEnd(kSidecar + 1, {.stream = 7, .rank = 0, .reads = 6});
  table.OnPassEnd(kSidecar, {.stream = 7, .rank = 1, .reads = 6});
  table.OnPassEnd(kSidecar, {.stream = 8, .rank = 0, .reads = 6});
  EXPECT_EQ(reported(), 5U) << "only of what one has attached";
  table.OnPassEnd(kSidecar, {.stream = 7, .rank = 0, .reads = 0});
  EXPECT_EQ(reported(), 0U);
}

// --- Lists

wire::StreamAttach Unknown(Rank rank = 0) {
  wire::StreamAttach attach = Attach(rank, 2);
  attach.known = false;
  return attach;
}

wire::StreamTrace List(PassNumber pass, std::uint8_t first_byte = 0x21) {
  return {.stream = 7, .pass = pass, .bits = 4, .length = 2, .packed = {std::byte{first_byte}}};
}

std::vector<PassNumber> Listed(const StreamTable& table) {
  std::vector<PassNumber> passes;
  const auto reports = table.Report();
  for (const auto& trace : reports.at(0).ranks.at(0).traces) {
    passes.push_back(trace.pass);
    EXPECT_EQ(trace.length, 2U);
    EXPECT_EQ(coordination::DigestHex(*table.TraceBytes(trace.digest)), trace.digest);
  }
  return passes;
}

TEST(StreamTable, ListsAreReportedByDigestUntilTheirPassIsOver) {
  StreamTable table;
  ASSERT_TRUE(table.OnAttach(kSidecar, Unknown()).ok());
  const std::uint64_t changes = table.changes();
  for (const PassNumber pass : {0U, 1U})
    ASSERT_TRUE(table.OnTrace(kSidecar, List(pass)).ok());
  EXPECT_EQ(table.changes(), changes + 2);
  EXPECT_EQ(Listed(table), (std::vector<PassNumber>{0, 1}));
  const std::string digest = table.Report()[0].ranks[0].traces[1].digest;
  table.OnProgress(kSidecar, {.stream = 7, .pass = 1}, kNow);
  ASSERT_TRUE(table.OnTrace(kSidecar, List(1, 0x43)).ok());
  EXPECT_EQ(Listed(table), std::vector<PassNumber>{1});
  EXPECT_NE(table.Report()[0].ranks[0].traces[0].digest, digest) << "another in its place";
  EXPECT_EQ(table.TraceBytes(digest), nullptr);
  ASSERT_TRUE(table.OnAttach(kSidecar, Unknown()).ok());
  EXPECT_TRUE(Listed(table).empty()) << "they are sent again";
  ASSERT_TRUE(table.OnTrace(kSidecar, List(1)).ok());
  table.OnProgress(kSidecar, {.stream = 7, .pass = 1, .ended = true}, kNow);
  EXPECT_TRUE(Listed(table).empty());
}

TEST(StreamTable, TakesListsOfPassesThatAreNearAndOfThoseWhoReadThere) {
  StreamTable table;
  ASSERT_TRUE(table.OnAttach(kSidecar, Unknown()).ok());
  EXPECT_TRUE(table.OnTrace(kSidecar + 1, List(0)).ok()) << "ignored";
  EXPECT_TRUE(Listed(table).empty());
  table.OnProgress(kSidecar, {.stream = 7, .pass = 5}, kNow);
  for (const PassNumber pass : {4U, 9U})
    EXPECT_EQ(table.OnTrace(kSidecar, List(pass)).code(), Code::kInvalidArgument) << pass;
  for (const PassNumber pass : {5U, 6U, 7U, 8U})
    EXPECT_TRUE(table.OnTrace(kSidecar, List(pass)).ok()) << pass;
  wire::StreamAttach known = Attach(1, 2);
  ASSERT_TRUE(table.OnAttach(kSidecar, known).ok());
  wire::StreamTrace of_known = List(0);
  of_known.rank = 1;
  EXPECT_EQ(table.OnTrace(kSidecar, of_known).code(), Code::kInvalidArgument) << "it has a recipe";
  table.OnProgress(kSidecar, {.stream = 7, .pass = 0}, kNow);
  EXPECT_TRUE(Listed(table).empty()) << "those of the life before";
}

TEST(StreamTable, ListsHaveLimitsByWhatTheySayTheyWillTake) {
  StreamTable table;
  constexpr std::uint64_t kLong = coordination::kMaxTraceBytes / 4 - 100;  // ids of 32 bits
  const auto begin = [&](ClientId from, Rank rank, PassNumber pass) {
    return table
        .OnTrace(from, {.stream = 7, .rank = rank, .pass = pass, .bits = 32, .length = kLong})
        .code();
  };
  const std::uint64_t of_client = kMaxTraceBytesOfClient / coordination::kMaxTraceBytes;
  for (Rank rank = 0; rank < 12; ++rank) {
    wire::StreamAttach attach = Attach(rank, 12);
    attach.known = false;
    ASSERT_TRUE(table.OnAttach(1 + rank / 4, attach).ok());
  }
  for (Rank rank = 0; rank < of_client; ++rank)
    EXPECT_EQ(begin(1, rank, 0), Code::kOk);
  EXPECT_EQ(begin(1, 0, 1), Code::kResourceExhausted) << "of one connection";
  EXPECT_EQ(begin(1, 0, 0), Code::kOk) << "in place of the same";
  for (Rank rank = 4; rank < 8; ++rank)
    EXPECT_EQ(begin(2, rank, 0), Code::kOk);
  EXPECT_EQ(begin(3, 8, 0), Code::kResourceExhausted) << "in all";
}

// One rank has ended, the other is still read in the stream's life before.
TEST(StreamTable, ARankThatIsStartedAgainBeginsFromNothing) {
  StreamTable table;
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach(0, 2)).ok());
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach(1, 2)).ok());
  wire::StreamProgress progress{.stream = 7, .rank = 1, .pass = 5, .epoch = 5, .position = 65};
  table.OnProgress(kSidecar, progress, kNow);
  table.OnServed(kSidecar, {.stream = 7, .items = {{5, 81, 1}}});
  progress.ended = true;
  table.OnProgress(kSidecar, progress, kNow);
  ASSERT_EQ(table.Positions(3).size(), 1U) << "the end of a life is no place in the next";
  EXPECT_EQ(table.Positions(3)[0].rank, 0U);
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach(1, 2)).ok());
  EXPECT_FALSE(table.Report().at(0).ranks.at(1).started);
  EXPECT_EQ(table.Positions(3).at(1).next, coordination::Cut());
}

TEST(StreamTable, WhatWasServedBeforeAPassIsReadAgainIsForgotten) {
  StreamTable table;
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach()).ok());
  table.OnProgress(kSidecar, {.stream = 7, .pass = 5, .epoch = 5, .position = 64}, kNow);
  table.OnServed(kSidecar, {.stream = 7, .items = {{5, 80, 1}}});
  table.OnProgress(kSidecar, {.stream = 7, .pass = 0, .epoch = 5, .position = 10}, kNow);
  EXPECT_EQ(table.Report().at(0).ranks.at(0).last_pass_end, 0U);
  EXPECT_EQ(table.Positions(3).at(0).next, (coordination::Cut{0, 10}));
}

TEST(StreamTable, AnOrderAsTextIsKnownIfItCanBeRead) {
  StreamTable table;
  wire::StreamAttach attach = Attach(0, 2);
  attach.known = false;
  ASSERT_TRUE(table.OnAttach(kSidecar, attach).ok());
  const auto recipe = [&table] { return table.Report().at(0).ranks.at(0).recipe; };
  const std::string text = "spdl-random size=9 world=2 drop_last=true";
  table.OnOrder(kSidecar, {.stream = 7, .rank = 0, .recipe = "newer size=9 world=2"});
  table.OnOrder(kSidecar, {.stream = 7, .rank = 0, .recipe = "torch-distributed size=9"});
  table.OnOrder(kSidecar + 1, {.stream = 7, .rank = 0, .recipe = text});
  table.OnOrder(kSidecar, {.stream = 8, .rank = 0, .recipe = text});
  EXPECT_FALSE(recipe().known);
  const std::uint64_t changes = table.changes();
  table.OnOrder(kSidecar, {.stream = 7, .rank = 0, .recipe = text});
  EXPECT_TRUE(recipe().known);
  EXPECT_EQ(recipe().order, text);
  EXPECT_TRUE(table.Report().at(0).ranks.at(0).order_known);
  EXPECT_GT(table.changes(), changes);
}

// --- The room in a report

wire::StreamAttach AttachOf(const std::string& name_space, StreamId stream, Rank rank = 0,
                            std::uint32_t world = coordination::kMaxWorld) {
  return {.dataset = 3,
          .dataset_name = name_space + "/images",
          .stream = stream,
          .stream_name = name_space + "/job/images/" + std::to_string(stream),
          .world = world,
          .rank = rank,
          .known = true};
}

void EndRank(StreamTable& table, StreamId stream, Rank rank, MonotonicTime now) {
  table.OnProgress(kSidecar, {.stream = stream, .rank = rank, .ended = true}, now);
}

bool IsTaken(const StreamTable& table) {
  const auto json = coordination::ToJson(
      coordination::Report{.node = "node", .address = "10.0.0.1:1", .streams = table.Report()});
  const auto parsed = coordination::ParseReport(json);
  EXPECT_TRUE(parsed.has_value()) << json.size() << " bytes: " << parsed.error().message();
  return parsed.has_value();
}

std::size_t ListedRanks(const StreamTable& table, StreamId stream) {
  for (const auto& report : table.Report()) {
    if (report.id == stream) return report.ranks.size();
  }
  return 0;
}

TEST(StreamTable, WhoAttachesAndEndsInALoopLeavesTheReportASizeThatIsTaken) {
  StreamTable table;
  constexpr Rank kRanks = 50'000;
  MonotonicTime now = kNow;
  for (const StreamId stream : {StreamId{1}, StreamId{2}}) {
    // One that goes on, so that the stream keeps its other ranks.
    ASSERT_TRUE(table.OnAttach(kSidecar, AttachOf("vision", stream, 0)).ok());
    for (Rank rank = 1; rank <= kRanks; ++rank) {
      ASSERT_TRUE(table.OnAttach(kSidecar, AttachOf("vision", stream, rank)).ok()) << rank;
      EndRank(table, stream, rank, now += std::chrono::microseconds(1));
    }
    ASSERT_TRUE(IsTaken(table));
  }
  EXPECT_EQ(table.Report().size(), 2U) << "who reads on is listed";
  table.Sweep(now + std::chrono::minutes(1));
  EXPECT_EQ(ListedRanks(table, 1) + ListedRanks(table, 2), 2U);
}

TEST(StreamTable, NamesThatGrowInTheReportLeaveItASizeThatIsTaken) {
  StreamTable table;
  for (StreamId stream = 1; stream <= coordination::kMaxStreams; ++stream) {
    wire::StreamAttach attach = AttachOf("vision", stream);
    attach.dataset_name = std::string(coordination::kMaxNameBytes, '\x01');
    attach.stream_name.append(coordination::kMaxNameBytes - attach.stream_name.size(), '\x02');
    const Status status = table.OnAttach(kSidecar, attach);
    EXPECT_TRUE(status.ok() || status.code() == Code::kResourceExhausted) << status.ToString();
  }
  EXPECT_FALSE(table.Report().empty());
  EXPECT_TRUE(IsTaken(table));
}

TEST(StreamTable, ANamespaceHasAShareOfTheReportAndLeavesTheRestToOthers) {
  StreamTable table;
  Rank ranks = 0;
  while (table.OnAttach(kSidecar, AttachOf("vision", 1, ranks)).ok())
    ++ranks;
  EXPECT_GT(ranks, 256U) << "more than a namespace may have at once by default";
  EXPECT_EQ(table.OnAttach(kSidecar, AttachOf("vision", 1, ranks)).code(),
            Code::kResourceExhausted);
  EXPECT_TRUE(table.OnAttach(kSidecar, AttachOf("vision", 1, 0)).ok()) << "it is listed already";
  EXPECT_TRUE(table.OnAttach(kSidecar + 1, AttachOf("speech", 2)).ok());
  table.OnClosed(kSidecar);
  EXPECT_TRUE(table.OnAttach(kSidecar, AttachOf("vision", 1, ranks)).ok());
}

TEST(StreamTable, WhoHasEndedFirstGivesWayToAnotherOfItsNamespace) {
  StreamTable table;
  ASSERT_TRUE(table.OnAttach(kSidecar + 1, AttachOf("speech", 2)).ok());
  table.OnProgress(kSidecar + 1, {.stream = 2, .ended = true}, kNow);
  Rank ranks = 0;
  while (table.OnAttach(kSidecar, AttachOf("vision", 1, ranks)).ok())
    ++ranks;
  EndRank(table, 1, 5, kNow + std::chrono::seconds(2));
  EndRank(table, 1, 9, kNow + std::chrono::seconds(1));
  EXPECT_EQ(ListedRanks(table, 1), ranks);
  ASSERT_TRUE(table.OnAttach(kSidecar, AttachOf("vision", 1, ranks)).ok());
  ASSERT_EQ(ListedRanks(table, 1), ranks);
  const auto listed = table.Report().at(0).ranks;
  EXPECT_EQ(listed.at(5).rank, 5U);
  EXPECT_EQ(listed.at(9).rank, 10U) << "9 ended first";
  EXPECT_EQ(ListedRanks(table, 2), 1U) << "the end of another namespace's is still to be heard of";
}

TEST(StreamTable, EndedStreamsOfOneNamespaceKeepNoPlaceFromAnother) {
  StreamTable table;
  for (StreamId stream = 1; stream <= 2 * coordination::kMaxStreams; ++stream) {
    ASSERT_TRUE(table.OnAttach(kSidecar, AttachOf("vision", stream)).ok()) << stream;
    EndRank(table, stream, 0, kNow);
  }
  EXPECT_TRUE(table.OnAttach(kSidecar + 1, AttachOf("speech", 9999)).ok());
  EXPECT_EQ(ListedRanks(table, 9999), 1U);
}

TEST(StreamTable, OrdersAsTextTakeRoomToo) {
  StreamTable table;
  const std::string order = "torch-distributed size=9 world=65536";
  Rank ranks = 0;
  for (; ranks < 3000; ++ranks) {
    wire::StreamAttach attach = AttachOf("vision", 1, ranks);
    attach.known = false;
    if (!table.OnAttach(kSidecar, attach).ok()) break;
  }
  for (Rank rank = 0; rank < ranks; ++rank)
    table.OnOrder(kSidecar, {.stream = 1, .rank = rank, .recipe = order});
  EXPECT_FALSE(table.Report().at(0).ranks.back().recipe.known) << "there was no room any more";
  EXPECT_TRUE(IsTaken(table));
}

}  // namespace
}  // namespace optcache::node
