#include "cli/plan/suggestion.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/simulate/until_search.h"
#include "sampler/order_source.h"

namespace optcache::cli {
namespace {

using simulation::Goal;

RunningJob TwoRanks(double rate) {
  return {.name = "vision/a/images/train",
          .recipe = {.size = 1000, .seed = 3, .world = 2},
          .epoch = 31,
          .position = 250,
          .length = 1000,
          .rate = rate};
}

RunningCache TwoNodes(std::vector<RunningJob> jobs) {
  return {.dataset = "vision/images",
          .manifest_digest = "8b1f",
          .samples = 1000,
          .bytes = 100'000,
          .capacity = 30'000,
          .nodes = 2,
          .jobs = std::move(jobs),
          .price = {}};
}

constexpr Goal kLittleWaiting{.of = Goal::Of::kWaiting, .at_most = 0.02, .price = {}};

Result<SimulateScene> SceneFor(const RunningCache& cache, std::uint32_t epochs = 2) {
  return SceneOf(cache, plan::Sizes::Equal(1000, 100), kLittleWaiting, epochs, {.bandwidth = 0.7});
}

TEST(SceneOfRunningJobs, ReadsTheirOwnOrdersFromWhereTheyAre) {
  const RunningJob job = TwoRanks(50);
  const auto scene = SceneFor(TwoNodes({job}));
  ASSERT_TRUE(scene) << scene.error().message();
  auto orders = *sampler::OrderSource::Make(job.recipe);
  std::vector<SampleId> expected;
  for (const auto epoch : {31ULL, 32ULL, 33ULL}) {
    const auto order = *orders.PassOrder(epoch);
    expected.insert(expected.end(), order.begin(), order.end());
  }
  ASSERT_EQ(scene->run.reads.size(), 2000U);
  for (std::size_t t = 0; t < scene->run.reads.size(); ++t) {
    ASSERT_EQ(scene->run.reads[t].sample, expected[t + 250]) << t;
    ASSERT_EQ(scene->run.reads[t].reader, t % 2) << "ranks are on the nodes in turn";
  }
  EXPECT_EQ(scene->policies, std::vector{simulation::PolicyKind::kOptimal});
  EXPECT_DOUBLE_EQ(scene->cache.stores.front().bandwidth, 0.7);
  EXPECT_DOUBLE_EQ(scene->cache.capacity, 0.3);
}

TEST(SceneOfRunningJobs, KeepsTheProportionsOfSpeedsAndTheLengthsOfPasses) {
  RunningJob fast = TwoRanks(100);
  fast.recipe = {.size = 400, .world = 1};
  fast.length = 300;  // it stops early
  fast.position = 0;
  fast.epoch_step = 0;
  const auto scene = SceneFor(TwoNodes({TwoRanks(50), fast}), 3);
  ASSERT_TRUE(scene) << scene.error().message();
  EXPECT_EQ(scene->run.reads.size(), 9000U);
  EXPECT_EQ(scene->run.jobs[1].pass_reads, 300U);
  EXPECT_EQ(*scene->run.jobs[1].passes[0], *scene->run.jobs[1].passes[1])
      << "set_epoch is forgotten";
  EXPECT_EQ(scene->run.jobs[1].node_of_rank.size(), 1U);
  const Status unmeasured = SceneFor(TwoNodes({TwoRanks(50), TwoRanks(0)})).error();
  EXPECT_EQ(unmeasured.code(), Code::kUnavailable);
}

double WaitingWithRoomForAll(const RunningCache& cache) {
  SimulateScene scene =
      *SceneOf(cache, plan::Sizes::Equal(1000, 100), kLittleWaiting, 6, {.bandwidth = 0.2});
  scene.cache.capacity = 1;
  return ValueOf(kLittleWaiting, *Simulate(scene.run, scene.cache, scene.policies.front()));
}

TEST(SceneOfRunningJobs, DoNotWaitWithRoomForAllWhereverTheyBegin) {
  RunningJob job = TwoRanks(50);
  for (const Position position : {0U, 1U, 250U, 500U, 999U}) {
    job.position = position;
    EXPECT_DOUBLE_EQ(WaitingWithRoomForAll(TwoNodes({job})), 0) << position;
    RunningJob validation = TwoRanks(10);
    validation.recipe = {.size = 200, .world = 1};
    validation.length = 25;
    validation.position = 10;
    const auto scene = SceneFor(TwoNodes({job, validation}), 6);
    EXPECT_EQ(FirstReads(scene->run, scene->run.steady_from()), 0U) << position;
    RunningCache on_one_node = TwoNodes({job, validation});
    on_one_node.nodes = 1;
    EXPECT_DOUBLE_EQ(WaitingWithRoomForAll(on_one_node), 0) << position;
  }
}

TEST(SceneOfRunningJobs, FollowsTheRetention) {
  RunningCache cache = TwoNodes({TwoRanks(0)});
  cache.retention = coordination::Retention::kLru;
  EXPECT_EQ(SceneFor(cache)->policies, std::vector{simulation::PolicyKind::kLru});
  cache.retention = coordination::Retention::kNone;
  EXPECT_EQ(SceneFor(cache).error().code(), Code::kInvalidArgument);
}

TEST(MeanSizes, AreThoseThatAreBelow4GiB) {
  RunningCache cache = TwoNodes({TwoRanks(0)});
  EXPECT_EQ(MeanSizes(cache)->total(), 100'000U);
  cache.bytes = 10;
  EXPECT_EQ(MeanSizes(cache)->total(), 1000U) << "a byte each at least";
  cache.bytes = 4'294'967'295'000;
  EXPECT_EQ(MeanSizes(cache)->total(), cache.bytes);
  cache.bytes += 1000;
  EXPECT_EQ(MeanSizes(cache).error(),
            Status(Code::kInvalidArgument,
                   "vision/images: a sample has 4294967296 bytes in the mean, 4 GiB at most are "
                   "planned for"));
}

MetricSample Metric(const char* name, double value, const char* dataset = "vision/images") {
  return {.name = name, .labels = {{"dataset", dataset}}, .value = value};
}
MetricSample WorkersTime(const char* state, double seconds) {
  return {.name = "optcache_client_process_seconds_total",
          .labels = {{"process", "worker"}, {"state", state}},
          .value = seconds};
}

constexpr const char* kReadBytes = "optcache_client_sample_bytes_total";
constexpr const char* kStoreBandwidth = "optcache_store_bandwidth_bytes";

TEST(RatesBetween, AreOfTheTimeBetweenTwoLooks) {
  const PagesBySidecar first = {{"a", {Metric(kReadBytes, 1000), Metric(kStoreBandwidth, 300)}},
                                {"b", {Metric(kReadBytes, 500), Metric(kStoreBandwidth, 0)}},
                                {"gone", {Metric(kReadBytes, 500), Metric(kStoreBandwidth, 700)}},
                                {"other", {Metric(kReadBytes, 0, "vision/others")}}};
  const PagesBySidecar second = {
      {"a", {Metric(kReadBytes, 3000), Metric(kStoreBandwidth, 250)}},
      {"b",
       {Metric(kReadBytes, 1500), Metric(kReadBytes, 999, "vision/others"),
        Metric(kStoreBandwidth, 200)}},
      {"new", {Metric(kReadBytes, 8000), Metric(kStoreBandwidth, 700)}},
      {"other", {Metric(kReadBytes, 999, "vision/others"), WorkersTime("waiting", 20)}}};
  EXPECT_EQ(RatesBetween(first, second, 10, "vision/images"),
            (MeasuredRates{.store = 450, .jobs = 300, .waited = 0}));
}

// Of a loader with eight workers, in 10 s.
MeasuredRates RatesOfWorkers(double waiting, double working, double idle) {
  const PagesBySidecar first = {{"a", {Metric(kReadBytes, 0)}}};
  const PagesBySidecar second = {{"a",
                                  {Metric(kReadBytes, 950),
                                   Metric("optcache_client_wait_seconds_total", waiting),
                                   WorkersTime("waiting", waiting),
                                   WorkersTime("working", working),
                                   WorkersTime("idle", idle),
                                   {.name = "optcache_loaders_attached", .value = 1}}}};
  return RatesBetween(first, second, 10, "vision/images");
}

TEST(RatesBetween, CompareTheWaitsOfWorkersWithTheTimeOfAllOfThem) {
  EXPECT_DOUBLE_EQ(RatesOfWorkers(4, 70, 6).waited, 0.05)
      << "4 s of 80 s, and not of the rank's 10";
  EXPECT_DOUBLE_EQ(RatesOfWorkers(40, 40, 0).waited, 0.5);
  EXPECT_DOUBLE_EQ(RatesOfWorkers(40, 0, 40).waited, 0) << "they are ahead of training";
}

TEST(RatesBetween, TakeTheSidecarWhoseProcessesWaitMost) {
  const PagesBySidecar first = {{"a", {Metric(kReadBytes, 0)}}, {"b", {Metric(kReadBytes, 0)}}};
  const PagesBySidecar second = {
      {"a", {Metric(kReadBytes, 9), WorkersTime("waiting", 20), WorkersTime("working", 20)}},
      {"b", {Metric(kReadBytes, 9), WorkersTime("idle", 400)}}};
  EXPECT_DOUBLE_EQ(RatesBetween(first, second, 10, "vision/images").waited, 0.5)
      << "workers of another job that are ahead change nothing";
}

std::string RefusedShare(double store_rate, double job_rate,
                         const std::optional<MeasuredRates>& measured) {
  const auto share = ShareOf(store_rate, job_rate, measured);
  if (share) return "no error";
  EXPECT_EQ(share.error().code(), Code::kInvalidArgument);
  return share.error().message();
}

TEST(ShareOf, DividesWhatIsGivenOrMeasured) {
  EXPECT_DOUBLE_EQ(ShareOf(700, 1000, std::nullopt)->bandwidth, 0.7);
  const MeasuredRates measured{.store = 450, .jobs = 950, .waited = 0.05};
  EXPECT_DOUBLE_EQ(ShareOf(0, 0, measured)->bandwidth, 0.45);
  EXPECT_DOUBLE_EQ(ShareOf(500, 0, measured)->bandwidth, 0.5);
  EXPECT_DOUBLE_EQ(ShareOf(0, 900, measured)->bandwidth, 0.5);
  EXPECT_EQ(ShareOf(0, 0, measured)->basis,
            "The store delivers 450 B/s (the sum of what each sidecar has measured); the jobs read "
            "1000 B/s if they never wait (measured while they waited 5.0 % of the time at most).");
}

TEST(ShareOf, SaysWhatIsNotKnownAndHowToGetIt) {
  EXPECT_TRUE(RefusedShare(0, 900, MeasuredRates{.jobs = 9}).contains("Set --store-rate"));
  EXPECT_TRUE(RefusedShare(500, 0, MeasuredRates{.store = 9}).contains("none of them has read"));
  const std::string waits = RefusedShare(500, 0, MeasuredRates{.jobs = 9, .waited = 0.11});
  EXPECT_TRUE(waits.contains("up to 11.0 % of the time")) << waits;
  EXPECT_TRUE(waits.contains("optcache headspace")) << waits;
}

Suggestion Suggested(const Goal& goal, Position position = 0) {
  RunningJob job = TwoRanks(0);
  job.position = position;
  Suggestion suggestion{.cache = TwoNodes({job}),
                        .report = {},
                        .epochs = 3,
                        .sizes = "of the manifest 8b1f.",
                        .rates = "as given."};
  const auto scene =
      SceneOf(suggestion.cache, plan::Sizes::Equal(1000, 100), goal, 3, {.bandwidth = 0.7});
  suggestion.report = *SearchUntil(*scene, /*draw=*/false);
  suggestion.now_value = 0.25;
  return suggestion;
}

TEST(Suggestion, SaysWhatWasFoundAndFromWhat) {
  const Suggestion suggestion = Suggested(kLittleWaiting);
  const std::optional<std::string> capacity = SuggestedCapacity(suggestion);
  ASSERT_TRUE(capacity);
  const double share = std::stod(*capacity) / 100;
  // The store sends 0.7 of what is read: without 0.3 of the misses, training waits for nothing.
  EXPECT_NEAR(share, 0.29, 0.02);
  const std::string text = SuggestionAsText(suggestion);
  EXPECT_TRUE(
      text.contains("Now: a capacity of 30.0 % (29.3 KiB), with which training waits 25.0 % "
                    "of the time.\n"))
      << text;
  EXPECT_TRUE(
      text.contains("Simulated: 3 epochs of the job that reads vision/images now, in its "
                    "order, from where it is now, on 2 nodes that begin empty.\n"))
      << text;
  EXPECT_TRUE(text.ends_with("Sizes: of the manifest 8b1f.\nRates: as given.\n")) << text;
  const auto json = nlohmann::json::parse(SuggestionAsJson(suggestion));
  EXPECT_EQ(json.at("suggested"), *capacity);
  EXPECT_DOUBLE_EQ(json.at("policies").at("optimal").at("capacity").get<double>(), share);
  EXPECT_DOUBLE_EQ(json.at("now").at("capacity").get<double>(), 0.3);
  EXPECT_EQ(json.at("jobs").size(), 1U);
}

TEST(Suggestion, SaysHowMuchDoesNotCount) {
  EXPECT_TRUE(SuggestionAsText(Suggested(kLittleWaiting)).contains("the first epoch is left out"));
  Suggestion suggestion = Suggested(kLittleWaiting, 250);  // some are new to it until 1.75
  EXPECT_NEAR(suggestion.report.epochs_left_out, 1.745, 0.005);
  const std::string text = SuggestionAsText(suggestion);
  EXPECT_TRUE(text.contains("; the first 1.7") && text.contains(" epochs are left out.")) << text;
}

TEST(Suggestion, IsNotWrittenWhereTheNodesMemoryIsTheLimit) {
  Suggestion suggestion = Suggested(kLittleWaiting);
  suggestion.cache.capacity = 10'000;  // less than what is suggested, some 29 %
  EXPECT_EQ(WhyNotApply(suggestion), std::nullopt) << "on one machine, no more is asked for";
  suggestion.cache.maximum = 10'000;
  EXPECT_EQ(WhyNotApply(suggestion), std::nullopt);
  suggestion.cache.maximum = 100'000;
  EXPECT_EQ(WhyNotApply(suggestion),
            "the nodes' memory is the limit: vision/images asks for 97.7 KiB, and they grant 9.77 "
            "KiB. Add memory or nodes, as its cache.capacity is large enough");
  suggestion.cache.capacity = 50'000;
  EXPECT_EQ(WhyNotApply(suggestion), std::nullopt) << "less than what is granted is enough";
}

TEST(Suggestion, OfAGoalThatNoCapacityReachesIsNone) {
  const Goal goal{.of = Goal::Of::kCost, .at_most = 1, .price = {.per_request = 1}};
  const Suggestion suggestion = Suggested(goal);
  EXPECT_EQ(SuggestedCapacity(suggestion), std::nullopt);
  EXPECT_TRUE(nlohmann::json::parse(SuggestionAsJson(suggestion)).at("suggested").is_null());
  EXPECT_EQ(SuggestedCapacity(Suggested({.of = Goal::Of::kWaiting, .at_most = 0.9, .price = {}})),
            std::nullopt)
      << "it is reached without a cache";
}

}  // namespace
}  // namespace optcache::cli
