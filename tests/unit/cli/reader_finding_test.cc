#include "cli/explain/reader_finding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

using testing::HasSubstr;

coordination::StreamStatus WholeStream() {
  return {.name = "vision/train/imagenet/loader",
          .pass = 3,
          .position = 25,
          .length = 100,
          .world = 8,
          .ranks = 8,
          .planned = true,
          .rate = 1532.14};
}

TEST(ReaderFinding, AWholeStreamWithAKnownOrderIsFine) {
  EXPECT_EQ(FindingOnReader(ReaderOf(WholeStream())),
            Fine("stream vision/train/imagenet/loader",
                 "8 of 8 ranks, in pass 3 (25 %), 1532.1 samples/s; its order is known"));
  const PlanJob job{.name = "a/b/c/d", .pass = 1, .ranks = 1, .rate = "", .planned = true};
  EXPECT_EQ(FindingOnReader(ReaderOf(job)),
            Fine("stream a/b/c/d", "1 rank, in pass 1; its order is known"));
}

TEST(ReaderFinding, WhatKeepsAStreamFromBeingPlannedIsAWarning) {
  const auto what = [](const coordination::StreamStatus& stream) {
    const Finding finding = FindingOnReader(ReaderOf(stream));
    EXPECT_EQ(finding.severity, Severity::kWarning) << finding.what;
    EXPECT_FALSE(finding.to_do.empty()) << finding.what;
    return finding.what;
  };
  coordination::StreamStatus stream = WholeStream();
  stream.order_known = false;
  EXPECT_THAT(what(stream), HasSubstr("its order is not known"));
  stream.conflict = "seed: 0 (rank 0), 1 (rank 3)";
  EXPECT_THAT(what(stream), HasSubstr("its ranks disagree on seed: 0 (rank 0), 1 (rank 3)"));
  stream = WholeStream();
  stream.ranks_lost = 2;
  EXPECT_THAT(what(stream), HasSubstr("2 of them are not heard of any more"));
  stream = WholeStream();
  stream.ranks = 5;
  EXPECT_THAT(what(stream), HasSubstr("5 of 8 ranks, in pass 3 (25 %), 1532.1 samples/s; the "
                                      "others are missing"));
  stream = WholeStream();
  stream.differs = "ranks: 4 (CachePlan), 8 (job)";
  EXPECT_THAT(what(stream), HasSubstr("it differs from its CachePlan: ranks: 4"));
}

TEST(ReaderFinding, OfManyStreamsThoseThatAreNotFineAreAllThere) {
  std::vector<ReaderFact> readers(20, ReaderOf(WholeStream()));
  for (std::size_t i = 0; i < 10; ++i)
    readers[i].order_known = false;
  std::vector<Finding> findings;
  AddFindingsOnReaders(readers, findings);
  ASSERT_EQ(findings.size(), 10U + 8U + 1U);
  EXPECT_EQ(findings.back().what, "2 more read it, and their orders are known");
  EXPECT_EQ(findings[9].severity, Severity::kWarning);
}

}  // namespace
}  // namespace optcache::cli
