#include "coordination/codec.h"

#include <gtest/gtest.h>

namespace optcache::coordination {
namespace {

Recipe SomeRecipe() {
  return {.sampler_kind = 2,
          .size = 1281167,
          .seed = -5,
          .world = 2,
          .shuffle = false,
          .drop_last = true,
          .modern_randperm = false,
          .base_seed = 1,
          .tail_permutation = false,
          .known = false};
}

TrialReport SomeTrial() {
  return {
      .id = "93be01d7ac@update",
      .planned = {.term = 2, .counter = 8},
      .digest = "00c0ffee",
      .all = {.reads = 1, .store_reads = 2, .read_bytes = 3, .store_bytes = 4, .moved_bytes = 5},
      .own = {.reads = 6, .store_reads = 7, .read_bytes = 8, .store_bytes = 9}};
}

Report SomeReport() {
  Report report{.node = "node-a",
                .incarnation = 0xfedcba9876543210U,
                .address = "10.0.0.1:7070",
                .metrics = "http://10.0.0.1:7071/metrics",
                .capacity = 1_GiB,
                .disk = 2_GiB,
                .leaving = true,
                .member = 4,
                .applied = {.term = 2, .counter = 9},
                .manifest_url = "https://10.0.0.1:4102",
                .manifests = {"00ff", "abcd"}};
  report.datasets.push_back({.name = "vision/imagenet",
                             .plan = "0.7 00000000000000a1 3",
                             .plan_digest = "abc",
                             .used_bytes = 5,
                             .disk_used_bytes = 3,
                             .samples = 6,
                             .hits = 7,
                             .peer_hits = 8,
                             .misses = 9,
                             .miss_bytes = 10,
                             .moves = 11,
                             .moved_bytes = 12,
                             .planned_misses = 13,
                             .covered_reads = 40,
                             .covered_hits = 26,
                             .predicted_hit_ratio = 0.375,
                             .manifest_digest = "00ff",
                             .total_samples = 14,
                             .total_bytes = 15,
                             .revision = "5f0c9a1b22",
                             .passes = {{.stream = 0xa1,
                                         .pass = 2,
                                         .hits = 16,
                                         .peer_hits = 17,
                                         .misses = 18,
                                         .miss_bytes = 19,
                                         .moved_bytes = 20,
                                         .planned_reads = 21,
                                         .planned_misses = 22,
                                         .planned_miss_bytes = 23,
                                         .planned_moved_bytes = 24}},
                             .trials = {SomeTrial(), {.id = "b", .error = "no order"}},
                             .store = {.answering = 25,
                                       .silent = 26,
                                       .silent_ms = 27,
                                       .cause = "refused",
                                       .changed = "a.jpg"}});
  report.retiring.push_back({.name = "vision/imagenet", .manifest_digest = "eeff"});
  StreamReport stream{.id = 0xffffffffffffffffU,
                      .name = "vision/job/imagenet/train",
                      .incarnation = 3,
                      .dataset = "vision/imagenet",
                      .dataset_key = 1};
  stream.ranks.push_back({.rank = 1,
                          .recipe = SomeRecipe(),
                          .started = true,
                          .pass = 2,
                          .epoch = 3,
                          .start = 4,
                          .position = 5,
                          .last_pass_end = 6,
                          .wait_us = 7,
                          .order_known = false,
                          .ended = true});
  report.streams.push_back(stream);
  report.savings = {.number = 28,
                    .datasets = {{.dataset = "vision/imagenet",
                                  .saved = {.requests = -29, .bytes = 30, .wait_us = 31}}}};
  report.demands = {{.dataset = "vision/imagenet",
                     .requests = {.askers = 32, .wanted = 33.5, .held_back = 34},
                     .bytes = {.askers = 35, .wanted = 36e9, .held_back = 37}}};
  return report;
}

DesiredState SomeState() {
  DesiredState state{.version = {.term = 1, .counter = 17}};
  state.members.push_back({.id = 3,
                           .name = "a",
                           .address = "h:1",
                           .capacity = 100,
                           .disk = 900,
                           .manifest_url = "https://h:2",
                           .leaving = true});
  DatasetState dataset{
      .name = "vision/imagenet",
      .manifest_digest = "00ff",
      .key = 0x0123456789abcdefU,
      .retention = Retention::kPin,
      .objective = Objective::kRequests,
      .planned = {.term = 1, .counter = 16},
      .base_digest = "beef",
      .capacities = {{.member = 3, .bytes = 50, .disk = 20}, {.member = 4, .departs = true}},
      .inventory_wanted = 8,
      .namespaces = {"vision", "speech"},
      .manifest_members = {3, 4},
      .manifest_holders = {3}};
  dataset.streams.push_back({.id = 5,
                             .name = "s",
                             .incarnation = 1,
                             .recipe = SomeRecipe(),
                             .rate_permille = 250,
                             .node_of_rank = {3, 0},
                             .complete = true,
                             .conflict = "seed: 0 (rank 0), 9 (rank 1)",
                             .first_pass = 2,
                             .first_epoch = 12,
                             .epoch_step = 0,
                             .cut = {.pass = 4, .position = 99}});
  dataset.revision = "5f0c9a1b22";
  dataset.update = {.revision = {.name = "93be01d7ac",
                                 .retention = Retention::kNone,
                                 .objective = Objective::kRequests,
                                 .recipes = {{.stream = 5, .recipe = {.seed = 7, .world = 2}}}},
                    .members = {3, 9}};
  dataset.trials = {{.id = "93be01d7ac@update", .revision = dataset.update->revision},
                    {.id = "p", .revision = {.name = "p"}, .expected = dataset.streams}};
  state.datasets.push_back(dataset);
  dataset.update.reset();
  dataset.trials.clear();
  dataset.manifest_digest = "eeff";
  dataset.retention = Retention::kLru;
  state.retiring.push_back(dataset);
  return state;
}

// The error of a report with one piece of its text replaced.
std::string ErrorOf(std::string_view piece, std::string_view replacement) {
  std::string json = ToJson(SomeReport());
  json.replace(json.find(piece), piece.size(), replacement);
  const Result<Report> report = ParseReport(json);
  return report ? "none" : report.error().message();
}

TEST(Codec, ReadsTheReportThatItWrites) {
  EXPECT_EQ(ParseReport(ToJson(SomeReport())), SomeReport());
}

TEST(Codec, ReadsTheStateThatItWrites) {
  EXPECT_EQ(ParseDesiredState(ToJson(SomeState())), SomeState());
}

TEST(Codec, ReadsTheInventoryThatItWrites) {
  const Inventory inventory{
      .node = "node-a",
      .incarnation = 1,
      .dataset = "vision/imagenet",
      .request = 12,
      .ids = {1, 5, 70000},
      .positions = {{.stream = 9, .rank = 1, .next = {2, 30}},
                    {.stream = 9, .rank = 2, .next = {2, 31}, .planned = true}}};
  EXPECT_EQ(ParseInventory(ToJson(inventory)), inventory);
}

TEST(Codec, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(ErrorOf("\"rank\":1", "\"rank\":2"),
            "streams[0].ranks[0].rank: 2 is not below the world size 2");
  EXPECT_EQ(ErrorOf("\"capacity\":1073741824", "\"capacity\":-1"),
            "capacity: not a whole number from 0 to 18446744073709551615");
  EXPECT_EQ(ErrorOf("\"node\":\"node-a\"", "\"node\":7"), "node: not a string");
  EXPECT_EQ(ErrorOf("\"node\":\"node-a\"", "\"other\":7"), "node: missing or empty");
  EXPECT_EQ(ErrorOf("\"2.9\"", "\"2\""),
            "applied: \"2\" is no version, allowed: TERM.COUNTER, as 0.17");
  EXPECT_EQ(ErrorOf("ffffffffffffffff", "123"), "streams[0].id: not 16 hexadecimal digits");
  EXPECT_EQ(ErrorOf("\"world\":2", "\"world\":0"),
            "streams[0].ranks[0].recipe.world: 0, allowed: 1 to 65536");
  EXPECT_EQ(ErrorOf("0.375", "\"much\""), "datasets[0].predicted_hit_ratio: not a number");
  EXPECT_EQ(ErrorOf("\"ended\":true", "\"ended\":1"),
            "streams[0].ranks[0].ended: not true or false");
}

TEST(Codec, RefusesAnUnknownRetentionWithTheOnesItKnows) {
  std::string json = ToJson(SomeState());
  json.replace(json.find("\"pin\""), 5, "\"fifo\"");
  EXPECT_EQ(ParseDesiredState(json).error().message(),
            "datasets[0].retention: \"fifo\" is not known, allowed: optimal, pin, lru, none");
}

TEST(Codec, RefusesAStreamWithoutAPlaceForEachRank) {
  std::string json = ToJson(SomeState());
  json.replace(json.find("[3,0]"), 5, "[3]");
  EXPECT_EQ(ParseDesiredState(json).error().message(),
            "datasets[0].streams[0].node_of_rank: 1 items for a world size of 2");
}

TEST(Codec, IgnoresFieldsItDoesNotKnowAndDefaultsMissingOnes) {
  const Result<Report> report = ParseReport(R"({"node":"a","address":"h:1","new":{"x":[1]}})");
  ASSERT_TRUE(report);
  EXPECT_EQ(*report, (Report{.node = "a", .address = "h:1"}));
}

TEST(Codec, AnAnswerSaysWhatMayBeAskedOfStores) {
  const ReportAnswer answer{.member = 3,
                            .shares = {{.dataset = "a/b", .requests = 12.5, .bytes = 13e6}}};
  EXPECT_EQ(
      ToJson(answer),
      R"({"member":3,"version":"0.0","shares":[{"dataset":"a/b","requests":12.5,"bytes":13000000.0}]})");
  EXPECT_EQ(ParseReportAnswer(ToJson(answer)).value(), answer);
}

TEST(Codec, ARateIsNeverBelowZeroOrBeyondAllNumbers) {
  const auto report = ParseReport(
      R"({"node": "a", "address": "h:1", "demands": [{"dataset": "a/b", "requests": {"wanted": -5}, "bytes": {"wanted": 1e300}}]})");
  ASSERT_TRUE(report.has_value()) << report.error().ToString();
  EXPECT_EQ(report->demands[0].requests.wanted, 0);
  EXPECT_EQ(report->demands[0].bytes.wanted, 0x1p63);
}

TEST(Codec, RefusesSavingsBeyondTheirLimit) {
  for (const std::string field : {"requests", "bytes", "wait_us"}) {
    const auto report = ParseReport(
        R"({"node": "a", "address": "h:1", "savings": {"number": 1, "datasets": [{"name": "a/b", ")" +
        field + R"(": 2305843009213693953}]}})");
    ASSERT_FALSE(report.has_value()) << field;
    EXPECT_EQ(report.error().message(),
              "savings.datasets[0].requests: it, bytes or wait_us is beyond 2^61");
  }
}

TEST(Codec, RefusesWhatIsNotAnObject) {
  EXPECT_EQ(ParseReport("[]").error().message(), "document: not an object");
  EXPECT_FALSE(ParseReport(""));
  EXPECT_FALSE(ParseReport("{\"node\":"));
}

TEST(Codec, RefusesTextAboveItsLimit) {
  EXPECT_EQ(ParseReport(std::string(kMaxReportBytes + 1, ' ')).error().message(),
            "JSON of 8388609 bytes, allowed: 8388608");
}

TEST(Version, OrdersByTermFirst) {
  EXPECT_LT((Version{0, 9}), (Version{1, 0}));
  EXPECT_LT((Version{1, 1}), (Version{1, 2}));
}

TEST(Version, ReadsWhatItWrites) {
  const Version version{.term = 7, .counter = 1ULL << 40U};
  EXPECT_EQ(ParseVersion(FormatVersion(version)), version);
  for (const char* text : {"", "1", "1.", ".1", "1.2.3", "-1.2", "1.2 ", "99999999999.1"}) {
    EXPECT_FALSE(ParseVersion(text)) << text;
  }
}

TEST(Codec, PassesThatStopEarlySaySo) {
  Report report = SomeReport();
  EXPECT_EQ(ToJson(report).find("pass_reads"), std::string::npos);
  report.streams[0].ranks[0].pass_reads = 1ULL << 40U;
  EXPECT_EQ(ParseReport(ToJson(report)).value(), report);
  DesiredState state = SomeState();
  EXPECT_EQ(ToJson(state).find("stops_at"), std::string::npos);
  state.datasets[0].streams[0].stops_at = 320'304;
  EXPECT_EQ(ParseDesiredState(ToJson(state)).value(), state);
}

TEST(Codec, StreamsSayInWhichLifeTheyAre) {
  DesiredState state = SomeState();
  EXPECT_EQ(ToJson(state).find("generation"), std::string::npos);
  state.datasets[0].streams[0].generation = {.term = 3, .counter = 17};
  EXPECT_EQ(ParseDesiredState(ToJson(state)).value(), state);
}

TEST(Codec, ListsAreNamedByDigestAndUnknownToWhoDoesNotKnowThem) {
  Report report = SomeReport();
  RankReport& rank = report.streams[0].ranks[0];
  rank.recipe.known = false;
  rank.traces = {{.pass = 3, .length = 60, .digest = "aa"},
                 {.pass = 5, .length = 61, .digest = "b"}};
  const std::string json = ToJson(report);
  EXPECT_NE(json.find(R"("traces":[{"pass":3,"length":60,"digest":"aa"},)"), std::string::npos);
  EXPECT_EQ(ParseReport(json).value(), report);
  std::swap(rank.traces[0], rank.traces[1]);
  EXPECT_FALSE(ParseReport(ToJson(report))) << "they do not ascend";
  rank.traces.assign(kMaxTraces + 1, {});
  EXPECT_FALSE(ParseReport(ToJson(report)));

  DesiredState state = SomeState();
  state.datasets[0].streams[0].traces = {{.pass = 2, .length = 120, .digest = "cc"}};
  EXPECT_EQ(ParseDesiredState(ToJson(state)).value(), state);

  const ReportAnswer answer{.member = 3, .version = {0, 17}, .traces_wanted = {"aa", "b"}};
  EXPECT_EQ(ToJson(answer), R"({"member":3,"version":"0.17","traces_wanted":["aa","b"]})");
  EXPECT_EQ(ParseReportAnswer(ToJson(answer)).value(), answer);
  EXPECT_TRUE(ParseReportAnswer("{}").has_value()) << "of an older coordinator";
  EXPECT_FALSE(ParseReportAnswer(R"({"traces_wanted": "aa"})"));
}

// An older part ignores the text and takes the order for unknown; one that is newer than this part
// is unknown to it.
TEST(Codec, ARecipeAsTextIsUnknownToWhoCannotReadIt) {
  Report report = SomeReport();
  coordination::Recipe& recipe = report.streams[0].ranks[0].recipe;
  recipe.known = true;
  recipe.order = "spdl-random size=9 world=2 drop_last=true";
  const std::string json = ToJson(report);
  EXPECT_NE(json.find("\"known\":false"), std::string::npos) << json;
  EXPECT_EQ(ParseReport(json).value(), report);
  std::string newer = json;
  newer.replace(newer.find("spdl-random"), 4, "spd2");
  const Recipe read = ParseReport(newer)->streams[0].ranks[0].recipe;
  EXPECT_FALSE(read.known);
  EXPECT_EQ(read.order, "");
  recipe.known = false;  // the trainer reads something else
  EXPECT_EQ(ParseReport(ToJson(report))->streams[0].ranks[0].recipe.order, "");
}

}  // namespace
}  // namespace optcache::coordination
