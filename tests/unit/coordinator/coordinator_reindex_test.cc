// A Dataset is indexed again while jobs read it: they go on with the manifest that they began with.

#include <gtest/gtest.h>

#include "dataset/digest.h"
#include "unit/coordinator/scenario.h"

namespace optcache::coordination {
namespace {

constexpr StreamId kLater = 0x99;

DatasetSpec WithManifest(const std::string& digest) {
  DatasetSpec spec = Scenario::Imagenet();
  spec.manifest_digest = digest;
  spec.key = digest == "aa" ? 1 : dataset::KeyOf(spec.name, digest);
  return spec;
}

void Reindex(Scenario& scenario, const std::string& digest) {
  scenario.coordinator().SetDatasets({WithManifest(digest)}, scenario.now());
}

// A stream of one rank on `node`, which begins with that manifest.
void Begin(Scenario& scenario, const std::string& node, StreamId id, const std::string& digest) {
  scenario.Stream(node, id).dataset_key = WithManifest(digest).key;
  scenario.At(node, 0, 1, id);
}

ByteCount Granted(const DatasetState& dataset) {
  ByteCount granted = 0;
  for (const MemberCapacity& share : dataset.capacities)
    granted += share.bytes;
  return granted;
}

void End(Scenario& scenario, const std::string& node, Rank rank, std::uint32_t world) {
  scenario.At(node, rank, world).ended = true;
}

TEST(Reindexing, AStreamGoesOnWithTheManifestThatItBeganWith) {
  Scenario scenario = TwoNodes();
  const Version planned = scenario.dataset().planned;
  Reindex(scenario, "bb");
  scenario.Seconds(5);
  EXPECT_EQ(scenario.dataset().manifest_digest, "bb");
  EXPECT_TRUE(scenario.dataset().streams.empty());
  ASSERT_EQ(scenario.state().retiring.size(), 1U);
  EXPECT_EQ(scenario.retiring().manifest_digest, "aa");
  EXPECT_EQ(scenario.retiring().key, 1U);
  EXPECT_TRUE(scenario.retiring().streams.at(0).complete);
  EXPECT_EQ(scenario.retiring().planned, planned) << "nothing has changed for it";
  EXPECT_EQ(Granted(scenario.retiring()), 300U);
  EXPECT_EQ(Granted(scenario.dataset()), 0U);
}

TEST(Reindexing, ALaterStreamBeginsOnTheNewManifestAndTheyShareByRanks) {
  Scenario scenario = TwoNodes();
  Reindex(scenario, "bb");
  scenario.Second();
  Begin(scenario, "b", kLater, "bb");
  for (int second = 0; second < 5; ++second) {
    scenario.Plan();
    EXPECT_LE(Granted(scenario.dataset()) + Granted(scenario.retiring()), 300U);
  }
  EXPECT_EQ(scenario.stream().id, kLater);
  EXPECT_TRUE(scenario.stream().complete);
  EXPECT_EQ(Granted(scenario.retiring()), 200U) << "two ranks of three";
  EXPECT_EQ(Granted(scenario.dataset()), 100U);
  EXPECT_EQ(scenario.retiring().capacities.size(), 2U) << "it keeps its members";
}

TEST(Reindexing, WhenTheLastStreamHasEndedTheOldManifestGoes) {
  Scenario scenario = TwoNodes();
  Reindex(scenario, "bb");
  Begin(scenario, "b", kLater, "bb");
  scenario.Plan();
  End(scenario, "a", 0, 2);
  End(scenario, "b", 1, 2);
  for (int second = 0; second < 5; ++second)
    scenario.Plan();
  EXPECT_EQ(Granted(scenario.dataset()), 300U) << "its bytes are free at once";
  for (int second = 0; second < 600; ++second)
    scenario.Plan();
  EXPECT_TRUE(scenario.state().retiring.empty());
  EXPECT_EQ(Granted(scenario.dataset()), 300U);
}

TEST(Reindexing, AStreamIsLostByTheUsualRule) {
  Scenario scenario = TwoNodes();
  scenario.Node("c");
  Reindex(scenario, "bb");
  scenario.Second();
  scenario.Remove("a");
  scenario.Remove("b");
  scenario.Seconds(599);
  EXPECT_EQ(scenario.state().retiring.size(), 1U);
  scenario.Seconds(10);
  EXPECT_TRUE(scenario.state().retiring.empty());
}

TEST(Reindexing, ASidecarThatHadTheManifestAlreadyMayBeginWithItForAWhile) {
  Scenario scenario;
  scenario.Node("a");
  scenario.Second();
  Reindex(scenario, "bb");
  scenario.Seconds(300);
  Begin(scenario, "a", kTrain, "aa");
  scenario.Plan();
  EXPECT_TRUE(scenario.retiring().streams.at(0).complete);
}

TEST(Reindexing, TheManifestThatWasBeforeComesBackAsItWas) {
  Scenario scenario = TwoNodes();
  const Version planned = scenario.dataset().planned;
  Reindex(scenario, "bb");
  scenario.Second();
  Reindex(scenario, "aa");
  scenario.Second();
  EXPECT_EQ(scenario.dataset().manifest_digest, "aa");
  EXPECT_TRUE(scenario.stream().complete);
  EXPECT_EQ(scenario.dataset().planned, planned);
  EXPECT_EQ(scenario.retiring().manifest_digest, "bb");
}

TEST(Reindexing, WhatIsWantedOfTheDatasetHoldsForTheOldManifestToo) {
  Scenario scenario = TwoNodes();
  DatasetSpec spec = WithManifest("bb");
  spec.namespaces = {"vision"};
  spec.retention = Retention::kPin;
  spec.capacity = 100;
  scenario.coordinator().SetDatasets({spec}, scenario.now());
  for (int second = 0; second < 5; ++second)
    scenario.Plan();
  EXPECT_EQ(scenario.retiring().namespaces, spec.namespaces);
  EXPECT_EQ(scenario.retiring().retention, Retention::kPin);
  EXPECT_EQ(Granted(scenario.retiring()), 100U);
}

TEST(Reindexing, ADatasetThatIsDeletedTakesItsOldManifestsAlong) {
  Scenario scenario = TwoNodes();
  Reindex(scenario, "bb");
  scenario.Second();
  scenario.coordinator().SetDatasets({}, scenario.now());
  scenario.Second();
  EXPECT_TRUE(scenario.state().retiring.empty());
}

TEST(Reindexing, OfManyTheOldestThatIsReadEndsWithANote) {
  Scenario scenario;
  Begin(scenario, "a", 1, "aa");
  scenario.Plan();
  Reindex(scenario, "bb");
  Reindex(scenario, "cc");  // nobody reads bb
  Begin(scenario, "a", 3, "cc");
  scenario.Plan();
  Reindex(scenario, "dd");
  scenario.Second();
  ASSERT_EQ(scenario.state().retiring.size(), kMaxRetiringOfDataset);
  EXPECT_EQ(scenario.state().retiring[0].manifest_digest, "aa");
  EXPECT_EQ(scenario.state().retiring[1].manifest_digest, "cc");
  scenario.Advance(std::chrono::seconds(1));
  Reindex(scenario, "ee");  // nobody reads dd
  Begin(scenario, "a", 5, "ee");
  scenario.Plan();
  Reindex(scenario, "ff");
  scenario.Second();
  ASSERT_EQ(scenario.state().retiring.size(), kMaxRetiringOfDataset);
  EXPECT_EQ(scenario.state().retiring[0].manifest_digest, "cc");
  EXPECT_EQ(scenario.state().retiring[1].manifest_digest, "ee");
  const ClusterStatus status = scenario.coordinator().Snapshot(scenario.now());
  const std::vector<std::string>& notes = status.datasets[0].notes;
  EXPECT_TRUE(std::ranges::any_of(notes, [](const std::string& note) {
    return note.starts_with("stream vision/job/imagenet/1 was refused");
  }));
  EXPECT_TRUE(std::ranges::any_of(notes, [](const std::string& note) {
    return note.starts_with("1 stream still reads an earlier manifest (cc), which has ");
  }));
}

TEST(Reindexing, ALaterIncarnationOnTheNewManifestEndsTheEarlierOne) {
  Scenario scenario = TwoNodes();
  Reindex(scenario, "bb");
  scenario.Second();
  const std::string name = scenario.Stream("a").name;
  Begin(scenario, "b", kLater, "bb");
  scenario.Stream("b", kLater).name = name;
  scenario.Stream("b", kLater).incarnation = 2;
  scenario.Node("a").streams.clear();
  std::erase_if(scenario.Node("b").streams,
                [](const StreamReport& stream) { return stream.id == kTrain; });
  scenario.Plan();
  EXPECT_TRUE(scenario.retiring().streams.empty());
  EXPECT_EQ(scenario.stream().incarnation, 2U);
}

TEST(Reindexing, AJobThatIsStartedAgainReadsTheNewManifest) {
  Scenario scenario = TwoNodes();
  Reindex(scenario, "bb");
  scenario.Second();
  scenario.Stream("a").dataset_key = scenario.Stream("b").dataset_key = WithManifest("bb").key;
  scenario.Seconds(20);
  EXPECT_EQ(scenario.retiring().streams.size(), 1U) << "its ranks may come back";
  for (int second = 0; second < 20; ++second)
    scenario.Plan();
  EXPECT_TRUE(scenario.retiring().streams.empty());
  EXPECT_TRUE(scenario.stream().complete);
  EXPECT_EQ(Granted(scenario.dataset()), 300U);
}

TEST(Reindexing, NumbersGoToTheManifestThatTheyAreOf) {
  Scenario scenario = TwoNodes();
  Reindex(scenario, "bb");
  scenario.Node("a").retiring = {
      {.name = "vision/imagenet", .used_bytes = 70, .hits = 7, .manifest_digest = "aa"}};
  scenario.Node("a").datasets = {
      {.name = "vision/imagenet", .used_bytes = 5, .hits = 1, .manifest_digest = "bb"}};
  scenario.Node("b").datasets = {{.name = "vision/imagenet", .used_bytes = 2}};  // an older node
  scenario.Second();
  const ClusterStatus status = scenario.coordinator().Snapshot(scenario.now());
  EXPECT_EQ(status.datasets.at(0).sum.used_bytes, 7U);
  EXPECT_EQ(status.datasets.at(0).sum.hits, 1U);
  EXPECT_EQ(status.retiring.at(0).sum.used_bytes, 70U);
  EXPECT_EQ(status.retiring.at(0).streams.size(), 1U);
  EXPECT_EQ(status.members.at(0).used, 75U);
  EXPECT_EQ(ParseClusterStatus(ToJson(status))->retiring, status.retiring);
}

// --- Another coordinator takes over -------------------------------------------------------------

// One that wants bb and hears of a node that serves `digest`, which a stream reads there.
Scenario Successor(const std::string& served_as, const std::string& digest) {
  Scenario scenario({WithManifest("bb")}, {.term = 5, .successor = true});
  Report& report = scenario.Node("a");
  report.member = 7;
  report.applied = {.term = 4, .counter = 70};
  const DatasetReport served{.name = "vision/imagenet",
                             .manifest_digest = digest,
                             .total_samples = 900,
                             .total_bytes = 800};
  (served_as == "retiring" ? report.retiring : report.datasets) = {served};
  Begin(scenario, "a", kTrain, "cc");
  scenario.Seconds(4);
  scenario.Plan();
  return scenario;
}

TEST(Reindexing, ASuccessorAdoptsWhatANodeServesAndAStreamReads) {
  for (const std::string served_as : {"retiring", "datasets"}) {
    Scenario scenario = Successor(served_as, "cc");
    ASSERT_EQ(scenario.state().retiring.size(), 1U) << served_as;
    EXPECT_EQ(scenario.retiring().manifest_digest, "cc");
    EXPECT_EQ(scenario.retiring().key, WithManifest("cc").key);
    EXPECT_TRUE(scenario.retiring().streams.at(0).complete);
    EXPECT_EQ(Granted(scenario.retiring()), 300U);
    EXPECT_EQ(Granted(scenario.dataset()), 0U);
    const ClusterStatus status = scenario.coordinator().Snapshot(scenario.now());
    EXPECT_EQ(status.retiring.at(0).total_samples, 900U);
    EXPECT_EQ(status.retiring.at(0).total_bytes, 800U);
  }
}

TEST(Reindexing, ASuccessorDoesNotAdoptWhatNoNodeVouchesFor) {
  Scenario scenario = Successor("retiring", "dd");
  EXPECT_TRUE(scenario.state().retiring.empty());
  const ClusterStatus status = scenario.coordinator().Snapshot(scenario.now());
  EXPECT_EQ(status.datasets.at(0).notes.size(), 1U) << "its stream is refused, and that is said";
}

}  // namespace
}  // namespace optcache::coordination
