#include "coordinator/observed_passes.h"

#include <gtest/gtest.h>

namespace optcache::coordination {
namespace {

PassStatus Pass(StreamId stream, PassNumber pass, std::uint64_t misses) {
  return {.stream = "ns/job" + std::to_string(stream) + "/d/l",
          .length = 100,
          .complete = true,
          .sum = {.stream = stream,
                  .pass = pass,
                  .hits = 60 - misses,
                  .peer_hits = 40,
                  .misses = misses,
                  .miss_bytes = misses * 10,
                  .moved_bytes = 7}};
}

TEST(ObservedPasses, CountHitsOfBothKinds) {
  PassSums sums;
  AddPass(sums, Pass(1, 0, 20), 10);
  EXPECT_EQ(sums.hits, 80U);
  EXPECT_EQ(sums.store_bytes, 200U);
  EXPECT_EQ(ObservedOf(sums, 1)->numbers, (EpochNumbers{800, 200, 7}));
  EXPECT_EQ(ObservedOf(sums, 1)->store_bytes_per_read_tenths, 20U);
}

TEST(ObservedPasses, ReadsPastTheNodesCostAsMuchAsMisses) {
  PassStatus pass = Pass(1, 0, 20);
  pass.sum.hits -= 10;
  PassSums sums;
  AddPass(sums, pass, 999);
  EXPECT_EQ(sums.store_bytes, 300U);
}

TEST(ObservedPasses, WhereAllWentPastTheNodesASampleIsOfMeanSize) {
  PassSums sums;
  AddPass(sums, {.length = 100, .complete = true}, 12);
  EXPECT_EQ(sums.store_bytes, 1200U);
  EXPECT_EQ(sums.hits, 0U);
}

TEST(ObservedPasses, MoreHitsThanReadsAreAllReads) {
  PassSums sums;
  AddPass(sums, {.length = 100, .complete = true, .sum = {.hits = 130}}, 12);
  EXPECT_EQ(sums.hits, 100U);
  EXPECT_EQ(sums.store_bytes, 0U);
}

TEST(ObservedPasses, AnEpochIsOnePassOfEveryStream) {
  PassSums sums;
  for (const StreamId stream : {1U, 2U}) {
    for (const PassNumber pass : {3U, 4U})
      AddPass(sums, Pass(stream, pass, 20), 10);
  }
  EXPECT_EQ(ObservedOf(sums, 2)->numbers.store_bytes, 400U);
  EXPECT_FALSE(ObservedOf({}, 2));
}

TEST(ObservedPasses, APlanCountsIfItCoversNineTenths) {
  PassStatus pass = Pass(1, 0, 20);
  pass.sum.planned_reads = 89;
  pass.sum.planned_misses = 18;
  pass.sum.planned_miss_bytes = 180;
  PassSums sums;
  AddPass(sums, pass, 10);
  EXPECT_FALSE(PlannedOf(sums, 1));
  sums.planned_reads = 90;
  sums.planned_hits = 72;
  EXPECT_EQ(PlannedOf(sums, 1), (EpochNumbers{800, 200, 0}));
  EXPECT_FALSE(PlannedOf({}, 1));
}

TEST(ObservedPasses, CountsWholePassesAfterTheMarks) {
  std::vector<PassStatus> passes = {Pass(1, 3, 20), Pass(1, 4, 20), Pass(1, 5, 20), Pass(2, 9, 20)};
  passes[2].complete = false;
  std::vector<PassMark> marks = {{.stream = 1, .pass = 3}, {.stream = 2, .pass = 9}};
  PassSums sums;
  std::string since;
  EXPECT_TRUE(CountPasses(passes, 10, 2, marks, sums, since).awaited);
  EXPECT_EQ(sums.passes, 1U);
  EXPECT_EQ(since, "pass 4 of ns/job1/d/l");
  EXPECT_FALSE(CountPasses(passes, 10, 2, marks, sums, since).some);
  passes[2].complete = true;
  passes.push_back(Pass(1, 6, 20));
  EXPECT_TRUE(CountPasses(passes, 10, 2, marks, sums, since).some);
  EXPECT_EQ(sums.passes, 2U);  // no more than asked for
  EXPECT_EQ(marks, (std::vector<PassMark>{{.stream = 1, .pass = 5, .passes = 2},
                                          {.stream = 2, .pass = 9}}));
}

TEST(ObservedPasses, OfStreamsThatBeganSinceAllPassesCount) {
  std::vector<PassMark> marks = {{.stream = 1, .pass = 3}};
  PassSums sums;
  std::string since;
  const CountedPasses counted = CountPasses({Pass(2, 0, 20)}, 10, 1, marks, sums, since);
  EXPECT_TRUE(counted.some);
  EXPECT_FALSE(counted.awaited);
  EXPECT_EQ(marks, (std::vector<PassMark>{{.stream = 1, .pass = 3},
                                          {.stream = 2, .passes = 1, .later = true}}));
  EXPECT_EQ(CountedStreams(marks), 1U);
  marks.clear();
  for (StreamId id = 10; marks.size() < kMaxMarks; ++id)
    marks.push_back({.stream = id});
  EXPECT_FALSE(CountPasses({Pass(2, 0, 20)}, 10, 1, marks, sums, since).some)
      << "it may have no mark";
}

TEST(ObservedPasses, AnEarlierLifesMarkGoes) {
  std::vector<PassMark> marks = {
      {.stream = 1, .pass = 7}, {.stream = 2, .pass = 7, .passes = 1}, {.stream = 3, .pass = 7}};
  const std::vector<ReadingStream> streams = {
      {.id = 1, .pass = 0}, {.id = 2, .pass = 0}, {.id = 3, .pass = 7}};
  EXPECT_FALSE(AllHaveBegunAnother(marks, streams));
  ForgetEarlierGenerations(streams, {}, 1, marks);
  EXPECT_EQ(marks, (std::vector<PassMark>{{.stream = 2, .pass = 7, .passes = 1},
                                          {.stream = 3, .pass = 7}}));
  EXPECT_TRUE(AllHaveBegunAnother({{.stream = 1, .pass = 7}}, streams));
}

TEST(ObservedPasses, TheLatestWholePassOfEachStream) {
  const std::vector<PassStatus> passes = {Pass(1, 3, 20), Pass(1, 4, 30), Pass(2, 9, 10)};
  const LatestPasses all = LatestOf(passes, {}, 10);
  EXPECT_EQ(all.streams, 2U);
  EXPECT_EQ(all.sums.store_bytes, 400U);
  EXPECT_EQ(all.since, "pass 4 of ns/job1/d/l");
  EXPECT_EQ(LatestOf(passes, {{.stream = 1, .pass = 4}}, 10).since, "pass 9 of ns/job2/d/l");
}

TEST(ObservedPasses, StreamsThatHaveEndedAreMarkedAtTheirLastPass) {
  std::vector<PassStatus> passes(3);
  passes[0].sum = {.stream = 1, .pass = 4};
  passes[1].sum = {.stream = 1, .pass = 5};
  passes[2].sum = {.stream = 2, .pass = 8};
  EXPECT_EQ(MarksAheadOf({{.id = 2, .pass = 9}}, passes),
            (std::vector<PassMark>{{.stream = 1, .pass = 5}, {.stream = 2, .pass = 9}}));
}

TEST(ObservedPasses, APassThatIsReadAheadIsMarked) {
  const std::vector<ReadingStream> streams = {{.id = 2, .pass = 9}};
  std::vector<PassStatus> passes(2);
  passes[0].sum = {.stream = 2, .pass = 9};
  passes[1].sum = {.stream = 2, .pass = 10};
  std::vector<PassMark> marks = MarksAheadOf(streams, passes);
  EXPECT_EQ(marks, (std::vector<PassMark>{{.stream = 2, .pass = 10}}));
  EXPECT_EQ(MarksOf(streams), (std::vector<PassMark>{{.stream = 2, .pass = 9}}));
  ForgetEarlierGenerations(streams, passes, 1, marks);
  EXPECT_EQ(marks.size(), 1U) << "it is not of an earlier generation";
  passes.clear();
  ForgetEarlierGenerations(streams, passes, 1, marks);
  EXPECT_TRUE(marks.empty());
}

TEST(ObservedPasses, MarksAreBounded) {
  std::vector<ReadingStream> streams;
  for (StreamId id = 300; id > 0; --id)
    streams.push_back({.id = id, .pass = 7});
  const std::vector<PassMark> marks = MarksOf(streams);
  ASSERT_EQ(marks.size(), kMaxMarks);
  EXPECT_EQ(marks.front().stream, 1U);
  EXPECT_FALSE(AllHaveBegunAnother(marks, streams));
  for (ReadingStream& stream : streams)
    ++stream.pass;
  EXPECT_TRUE(AllHaveBegunAnother(marks, streams));
  EXPECT_TRUE(AllHaveBegunAnother(marks, {}));
}

TEST(Forecasts, AreComparedByStoreBytesOfARead) {
  const Forecast current{.reads = 1000, .store_reads = 500, .store_bytes = 1'000'000};
  EXPECT_FALSE(IsPredictedWorse({.reads = 1000, .store_bytes = 1'005'000}, current));
  EXPECT_TRUE(IsPredictedWorse({.reads = 1000, .store_bytes = 1'005'001}, current));
  EXPECT_FALSE(IsPredictedWorse({.reads = 2000, .store_bytes = 2'010'000}, current));
  EXPECT_FALSE(IsPredictedWorse({}, current));
  EXPECT_FALSE(IsPredictedWorse({.reads = 1000, .store_bytes = 1}, {}));
  const Forecast none{.reads = 1000, .read_bytes = 2'000'000};
  EXPECT_FALSE(
      IsPredictedWorse({.reads = 1000, .read_bytes = 2'000'000, .store_bytes = 2000}, none));
  EXPECT_TRUE(
      IsPredictedWorse({.reads = 1000, .read_bytes = 2'000'000, .store_bytes = 2001}, none));
  EXPECT_EQ(LeastWorseTenths(1000), 50U);
  EXPECT_FALSE(IsMoreBy(105, 100, 50'000));
  EXPECT_TRUE(IsMoreBy(106, 100, 50'000));
  EXPECT_TRUE(IsMoreBy(1, 0, 50'000));
  EXPECT_EQ(NumbersOf(current)->hit_permille, 500U);
  EXPECT_FALSE(NumbersOf({}));
}

TEST(Texts, AreDecimal) {
  EXPECT_EQ(RatioText(62), "0.062");
  EXPECT_EQ(RatioText(1000), "1.000");
  EXPECT_EQ(TenthsText(712'345), "71234.5");
}

}  // namespace
}  // namespace optcache::coordination
