#include "cache-node/control/report_room.h"

#include <gtest/gtest.h>

namespace optcache::node {
namespace {

constexpr MonotonicTime kEndedAt{std::chrono::hours(1)};

TEST(ReportRoom, ANamespaceHasItsShareAndAllHaveTheWhole) {
  ReportRoom room;
  EXPECT_TRUE(room.Fits("a", kMaxListedBytesOfNamespace).ok());
  EXPECT_EQ(room.Fits("a", kMaxListedBytesOfNamespace + 1).code(), Code::kResourceExhausted);
  for (const char* name : {"a", "b", "c", "d"})
    room.Take(name, kMaxListedBytesOfNamespace);
  EXPECT_EQ(room.bytes(), kMaxListedBytes);
  EXPECT_NE(room.Fits("a", 1).message().find("namespace a"), std::string::npos);
  EXPECT_EQ(room.Fits("e", 1).code(), Code::kResourceExhausted);
  room.Free("d", kMaxListedBytesOfNamespace);
  EXPECT_TRUE(room.Fits("e", 1).ok());
}

TEST(ReportRoom, WhoEndedFirstGivesWayFirstInItsOwnNamespace) {
  ReportRoom room;
  room.Take("a", 10);
  room.Take("b", 10);
  EXPECT_EQ(room.GivesWay("a", 1), std::nullopt);
  const ReportRoom::EndedRank early{.since = kEndedAt, .stream = 9};
  const ReportRoom::EndedRank late{.since = kEndedAt + std::chrono::seconds(1), .stream = 1};
  const ReportRoom::EndedRank other{.since = kEndedAt - std::chrono::seconds(1), .stream = 5};
  room.OnEnded("a", late);
  room.OnEnded("a", early);
  room.OnEnded("b", other);
  EXPECT_EQ(room.FirstEnded(), other);
  EXPECT_EQ(room.GivesWay("a", 1), early);
  room.OnGone("a", early);
  EXPECT_EQ(room.GivesWay("a", 1), late);
  room.OnGone("a", late);
  EXPECT_EQ(room.GivesWay("a", 1), other);
  EXPECT_EQ(room.GivesWay("a", kMaxListedBytesOfNamespace), std::nullopt)
      << "what others leave does not make its share larger";
}

}  // namespace
}  // namespace optcache::node
