#include "coordination/report_size.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "coordination/codec.h"

namespace optcache::coordination {
namespace {

template <typename Number>
constexpr Number kMost = std::numeric_limits<Number>::max();

RankReport WidestRank() {
  return {.rank = kMost<Rank>,
          .recipe = {.sampler_kind = 255,
                     .size = kMost<std::uint64_t>,
                     .seed = std::numeric_limits<std::int64_t>::min(),
                     .world = kMost<std::uint32_t>,
                     .shuffle = false,
                     .modern_randperm = false,
                     .base_seed = 255,
                     .tail_permutation = false,
                     .known = true,
                     .passes = kMost<std::uint32_t>,
                     .order = "\n"},
          .pass = kMost<PassNumber>,
          .epoch = kMost<std::uint64_t>,
          .start = kMost<Position>,
          .position = kMost<Position>,
          .last_pass_end = kMost<Position>,
          .wait_us = kMost<std::uint64_t>,
          .order_known = false,
          .traces = {{.pass = kMost<PassNumber>,
                      .length = kMost<std::uint64_t>,
                      .digest = std::string(64, 'f')}},
          .pass_reads = kMost<std::uint64_t>};
}

PassReport WidestPass(StreamId stream = kMost<StreamId>, PassNumber pass = kMost<PassNumber>) {
  constexpr auto kNumber = kMost<std::uint64_t>;
  return {.stream = stream,
          .pass = pass,
          .hits = kNumber,
          .peer_hits = kNumber,
          .misses = kNumber,
          .miss_bytes = kNumber,
          .moved_bytes = kNumber,
          .planned_reads = kNumber,
          .planned_misses = kNumber,
          .planned_miss_bytes = kNumber,
          .planned_moved_bytes = kNumber};
}

RateDemand WidestDemand() {
  return {
      .askers = kMost<std::uint32_t>, .wanted = -kMost<double>, .held_back = kMost<std::uint32_t>};
}

TEST(ReportSize, NoPartOfAReportIsLargerThanItSays) {
  const std::size_t empty = ToJson(Report{}).size();
  Report report{.streams = {{.id = kMost<StreamId>,
                             .name = "\x01\x7f\"",
                             .incarnation = kMost<std::uint32_t>,
                             .dataset = "\xc3\xa4\\\xff",
                             .dataset_key = kMost<DatasetKey>}}};
  const StreamReport& stream = report.streams[0];
  const std::size_t of_stream =
      kMaxStreamJsonBytes + MaxTextJsonBytes(stream.name) + MaxTextJsonBytes(stream.dataset);
  EXPECT_LE(ToJson(report).size() - empty, of_stream);

  report.streams[0].ranks = {WidestRank(), WidestRank()};
  const std::size_t of_rank = kMaxRankJsonBytes + MaxTextJsonBytes("\n") + kMaxTraceJsonBytes;
  EXPECT_LE(ToJson(report).size() - empty, of_stream + 2 * of_rank);

  report = {.datasets = {DatasetReport{}}};
  const std::size_t of_dataset = ToJson(report).size();
  report.datasets[0].passes = {WidestPass(), WidestPass()};
  EXPECT_LE(ToJson(report).size() - of_dataset, 2 * kMaxPassJsonBytes + 20);
}

TEST(ReportSize, TextsAreAsLongAsJsonMakesThem) {
  EXPECT_EQ(MaxTextJsonBytes("vision/a"), 8U);
  EXPECT_EQ(MaxTextJsonBytes("\"\\"), 4U);
  EXPECT_EQ(MaxTextJsonBytes("\x1b"), 6U);
}

TEST(ReportSize, FewPassesAreAllReported) {
  Report report{.datasets = {{.passes = {WidestPass(1, 1), WidestPass(1, 2)}}}};
  EXPECT_EQ(LeaveOutPasses(report), 0U);
  EXPECT_EQ(report.datasets[0].passes.size(), 2U);
}

TEST(ReportSize, OfManyPassesTheLatestOfEachStreamAreReported) {
  Report report;
  for (StreamId stream = 1; stream <= kMaxStreams; ++stream) {
    auto& list = stream % 2 == 0 ? report.datasets : report.retiring;
    DatasetReport& dataset = list.emplace_back();
    for (PassNumber pass = 0; pass < 5; ++pass)
      dataset.passes.push_back(WidestPass(stream, pass));
  }
  EXPECT_EQ(LeaveOutPasses(report), 4 * kMaxStreams);
  ASSERT_EQ(report.retiring[0].passes.size(), 1U);
  EXPECT_EQ(report.retiring[0].passes[0].pass, 4U);
}

TEST(ReportSize, AReportOfWhatThereMayBeIsTaken) {
  Report report{.node = "node"};
  for (std::size_t i = 0; i < kMaxDatasets; ++i) {
    DatasetReport& dataset = report.datasets.emplace_back();
    dataset.name = std::string(63, 'n') + "/" + std::string(253, 'd');
    dataset.manifest_digest = std::string(64, 'f');
    dataset.store.silent = 1;
    dataset.store.cause = std::string(kMaxCauseBytes, '"');
    dataset.store.changed = std::string(kMaxCauseBytes, '"');
    for (StreamId stream = 1; stream <= 8; ++stream)
      for (PassNumber pass = 0; pass < 2; ++pass)
        dataset.passes.push_back(WidestPass(stream, pass));
    report.demands.push_back(
        {.dataset = dataset.name, .requests = WidestDemand(), .bytes = WidestDemand()});
  }
  for (std::size_t i = 0; i < kMaxRetiringOfDataset; ++i)
    report.retiring.insert(report.retiring.end(), report.datasets.begin(), report.datasets.end());
  report.manifests.assign(kMaxManifests, std::string(64, 'f'));
  EXPECT_GT(LeaveOutPasses(report), 0U);
  // The rest is for the streams: cache-node/control/report_room.h.
  EXPECT_LE(ToJson(report).size(), kMaxReportBytes / 2);
}

}  // namespace
}  // namespace optcache::coordination
