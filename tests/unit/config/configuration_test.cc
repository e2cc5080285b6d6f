#include "config/configuration.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/source_dir.h"

namespace optcache::config {
namespace {

constexpr std::string_view kImages = R"(apiVersion: optcache.io/v1alpha1
kind: Dataset
metadata: {name: images, namespace: vision}
spec:
  source:
    file: {path: /data}
  cache: {capacity: 30%}
)";
constexpr std::string_view kPlan = R"(apiVersion: optcache.io/v1alpha1
kind: CachePlan
metadata: {name: images, namespace: vision}
spec:
  dataset: images
)";

std::string Replaced(std::string_view text, std::string_view piece, std::string_view by) {
  std::string out(text);
  const std::size_t at = out.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  return out.replace(at, piece.size(), by);
}

std::string ErrorOf(std::string_view text) {
  const Result<Configuration> configuration = ParseConfiguration(text, "f.yaml");
  return configuration ? "none" : configuration.error().message();
}
// The error of kImages with one piece replaced.
std::string WithImages(std::string_view piece, std::string_view by) {
  return ErrorOf(Replaced(kImages, piece, by));
}
std::string WithPlan(std::string_view spec) {
  return ErrorOf(std::string(kPlan) + std::string(spec));
}

TEST(Configuration, ReadsADatasetWithDefaults) {
  const Result<Configuration> configuration = ParseConfiguration(kImages, "f.yaml");
  ASSERT_TRUE(configuration) << configuration.error().ToString();
  const Dataset expected{
      .name = "images",
      .name_space = "vision",
      .spec = {.source = api::FileSource{.path = "/data"}, .capacity = {.percent = 30}}};
  EXPECT_EQ(configuration->datasets, std::vector{expected});
  EXPECT_EQ(expected.QualifiedName(), "vision/images");
}

TEST(Configuration, NamespaceIsDefaultUnlessWritten) {
  const auto configuration =
      ParseConfiguration(Replaced(kImages, ", namespace: vision", ""), "f.yaml");
  ASSERT_TRUE(configuration);
  EXPECT_EQ(configuration->datasets[0].QualifiedName(), "default/images");
}

TEST(Configuration, ReadsWhatADatasetKeepsInAnyCase) {
  const auto configuration =
      ParseConfiguration(Replaced(kImages, "30%}", "30%, minCapacity: 1Gi}"), "f.yaml");
  ASSERT_TRUE(configuration) << configuration.error().ToString();
  EXPECT_EQ(configuration->datasets[0].spec.min_capacity, api::Capacity{.bytes = 1_GiB});
  EXPECT_EQ(WithImages("30%}", "30%, minCapacity: 31%}"),
            "f.yaml:7: spec.cache.minCapacity: is above capacity: at most that");
}

TEST(Configuration, ReadsWhoElseMayUseADataset) {
  const auto configuration =
      ParseConfiguration(Replaced(kImages, "  cache:",
                                  "  access: [{namespace: a}, {namespace: b}]\n"
                                  "  cache:"),
                         "f.yaml");
  ASSERT_TRUE(configuration) << configuration.error().ToString();
  EXPECT_EQ(configuration->datasets[0].spec.access, (std::vector<std::string>{"a", "b"}));
}

TEST(Configuration, ReadsEveryFieldOfAPlan) {
  const auto configuration = ParseConfiguration(std::string(kPlan) + R"(
  retention: LRU
  objective: Requests
  jobs: [{name: j, sampler: {kind: TorchRandom, seed: -3, worldSize: 2, epochs: 5, shuffle: false, dropLast: true}}]
  rollout: {strategy: AllAtOnce, partition: 2, maxUnavailable: 3, activateAt: Now, paused: true, acknowledge: true,
            progressDeadlineSeconds: 60, epochDeadlineSeconds: 3600, restartedAt: "2027-01-15T08:00:00Z",
            abort: {whenBelowPredictedBy: "0.1", whenWorseThanPreviousBy: 0.2, after: 4}}
  revisionHistoryLimit: 3
)",
                                                "f.yaml");
  ASSERT_TRUE(configuration) << configuration.error().ToString();
  const CachePlan expected{.name = "images",
                           .name_space = "vision",
                           .where = "f.yaml:5: spec.dataset",
                           .spec = {.dataset = "images",
                                    .retention = api::Retention::kLru,
                                    .objective = plan::Objective::kRequests,
                                    .jobs = {{.name = "j",
                                              .sampler = api::JobSampler::kTorchRandom,
                                              .seed = -3,
                                              .world = 2,
                                              .epochs = 5,
                                              .shuffle = false,
                                              .drop_last = true}},
                                    .rollout = {.all_at_once = true,
                                                .at_epoch_boundary = false,
                                                .paused = true,
                                                .acknowledge = true,
                                                .partition = 2,
                                                .max_unavailable = {.amount = 3, .percent = false},
                                                .below_predicted_millionths = 100'000,
                                                .worse_than_previous_millionths = 200'000,
                                                .after = 4,
                                                .progress_deadline_seconds = 60,
                                                .epoch_deadline_seconds = 3600,
                                                .restarted_at = "2027-01-15T08:00:00Z"},
                                    .revision_history = 3}};
  EXPECT_EQ(configuration->plans, std::vector{expected});
}

TEST(Configuration, ReadsTheSamples) {
  int count = 0;
  const std::string folder = InRepository("manifests/samples");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const Result<std::string> text = ReadFile(entry.path(), kMaxFileBytes);
    ASSERT_TRUE(text);
    const auto configuration = ParseConfiguration(*text, entry.path().filename().string());
    ASSERT_TRUE(configuration) << configuration.error().ToString();
    EXPECT_TRUE(CheckReferences(*configuration).ok());
    ++count;
  }
  EXPECT_GE(count, 3);
}

TEST(Configuration, ADatasetWithoutAPlanHasOneWithDefaults) {
  const auto configuration = ParseConfiguration(kImages, "f.yaml");
  ASSERT_TRUE(configuration);
  const CachePlan plan = configuration->PlanOf(configuration->datasets[0]);
  EXPECT_EQ(plan,
            (CachePlan{.name = "images", .name_space = "vision", .spec = {.dataset = "images"}}));
}

TEST(Configuration, NamesTheLineOfAnUnknownKeyAndTheKeysThereAre) {
  EXPECT_EQ(WithImages("cache: {capacity", "cache: {capcity"),
            "f.yaml:7: spec.cache.capacity: missing, allowed: a quantity (500Gi) or a share (30%)");
  EXPECT_EQ(WithImages("30%}", "30%, tier: [Memory]}"),
            "f.yaml:7: spec.cache.tier is not known, allowed: capacity, minCapacity, tiers");
  EXPECT_EQ(WithImages("kind: Dataset", "kind: Dataset\nextra: 1"),
            "f.yaml:3: extra is not known, allowed: apiVersion, kind, status, metadata, spec");
}

TEST(Configuration, NamesTheLineOfAWrongValue) {
  EXPECT_EQ(WithImages("optcache.io/v1alpha1", "v1"),
            "f.yaml:1: apiVersion: 'v1' is not known, allowed: optcache.io/v1alpha1");
  EXPECT_EQ(WithImages("kind: Dataset", "kind: Pod"),
            "f.yaml:2: kind: 'Pod' is not known, allowed: Dataset, CachePlan");
  EXPECT_EQ(WithImages("30%", "30 gigabytes").substr(0, 57),
            "f.yaml:7: spec.cache.capacity: '30 gigabytes' is not a qu");
  EXPECT_EQ(WithImages("30%", "0%"),
            "f.yaml:7: spec.cache.capacity: '0%', allowed: above 0% and at most 1000%");
  EXPECT_EQ(WithImages("30%", "0"),
            "f.yaml:7: spec.cache.capacity: 0 would cache nothing, write a capacity above 0");
  EXPECT_EQ(WithImages("30%}", "30%, tiers: [Tape]}"),
            "f.yaml:7: spec.cache.tiers: 'Tape' is not known, allowed: Memory, Disk");
  EXPECT_EQ(WithImages("30%}", "30%, tiers: Memory}"),
            "f.yaml:7: spec.cache.tiers: not a list, allowed: [one, two]");
  EXPECT_EQ(WithImages("/data", "[/data]"),
            "f.yaml:6: spec.source.file.path: a list or mapping, allowed: a single value");
  EXPECT_EQ(WithImages("cache: {capacity: 30%}", "cache: 30%"),
            "f.yaml:7: spec.cache: not a mapping, allowed: {key: value}");
}

TEST(Configuration, ChecksNamesAsKubernetesDoes) {
  EXPECT_EQ(WithImages("name: images", "name: My_Images"),
            "f.yaml:3: metadata.name: 'My_Images', allowed: a-z, 0-9, - and dots, a letter or "
            "digit at both ends of each part");
  EXPECT_EQ(WithImages("namespace: vision", "namespace: a.b"),
            "f.yaml:3: metadata.namespace: 'a.b', allowed: at most 63 of a-z, 0-9 and -, a letter "
            "or digit at both ends");
  for (const char* name : {"a..b", "-a", "a-", "a.", ".a"}) {
    EXPECT_NE(WithImages("name: images", "name: " + std::string(name)), "none") << name;
  }
  EXPECT_EQ(WithImages("name: images", "name: a-1.b.c"), "none");
  EXPECT_NE(WithImages("name: images", "name: " + std::string(64, 'a')), "none");
}

TEST(Configuration, NeedsExactlyOneSourceThatIsSupported) {
  EXPECT_EQ(WithImages("file: {path: /data}", "{}"),
            "f.yaml:6: spec.source: needs exactly one of file, http and s3");
  EXPECT_EQ(WithImages("file: {path: /data}", "file: {path: /data}\n    s3: {bucket: b}"),
            "f.yaml:6: spec.source: needs exactly one of file, http and s3");
  EXPECT_EQ(WithImages("file: {path: /data}", "pvc: {claimName: c}"),
            "f.yaml:6: spec.source.pvc: is a volume of a cluster; on one machine write file: "
            "{path: …}");
  EXPECT_EQ(WithImages("file: {path: /data}", "http: {baseURL: ftp://h}"),
            "f.yaml:6: spec.source.http.baseURL: 'ftp://h', allowed: http://… or https://…");
  EXPECT_EQ(WithImages("file: {path: /data}", "http: {baseURL: http://h, secretRef: {name: k}}"),
            "f.yaml:6: spec.source.http.secretRef: names a Secret of a cluster; on one machine "
            "leave it out and give `--keys NAME=FOLDER`");
}

TEST(Configuration, ReadsThePatienceWithTheSource) {
  const auto parsed = ParseConfiguration(
      Replaced(kImages, "    file:", "    patience: 1h30m\n    file:"), "f.yaml");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->datasets.at(0).spec.patience_seconds, 5400);
  EXPECT_EQ(ParseConfiguration(kImages, "f.yaml")->datasets.at(0).spec.patience_seconds, 0);
  EXPECT_EQ(WithImages("    file:", "    patience: 600\n    file:"),
            "f.yaml:6: spec.source.patience: '600', allowed: a span of time from 1s to 24h, "
            "written with h, m and s, for example 10m or 1h30m");
}

TEST(Configuration, ReadsTheIntervalOfIndexing) {
  const auto parsed = ParseConfiguration(
      Replaced(kImages, "  cache:", "  index: {interval: 12h}\n  cache:"), "f.yaml");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->datasets.at(0).spec.index_interval_seconds, 43'200);
  EXPECT_EQ(ParseConfiguration(kImages, "f.yaml")->datasets.at(0).spec.index_interval_seconds, 0);
  EXPECT_EQ(WithImages("  cache:", "  index: {interval: 5m}\n  cache:"),
            "f.yaml:7: spec.index.interval: '5m', allowed: a span of time from 10m to 720h, "
            "written with h, m and s, for example 1h or 24h");
}

TEST(Configuration, ReadsThePricesOfTheSource) {
  const auto parsed = ParseConfiguration(
      Replaced(kImages, "  cache:", "  cost: {perRequest: \"0.0000004\", perGiB: 0.09}\n  cache:"),
      "f.yaml");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->datasets.at(0).spec.price,
            (dataset::StorePrice{.per_request = 0.0000004, .per_gib = 0.09}));
  EXPECT_EQ(
      WithImages("  cache:", "  cost: {perGiB: 4e-7}\n  cache:"),
      "f.yaml:7: spec.cost.perGiB: '4e-7', allowed: a decimal number above 0, at most 1000000 "
      "and of at most 32 characters, in quotes, for example \"0.0000004\"");
  EXPECT_EQ(WithImages("  cache:", "  cost: {perByte: 1}\n  cache:"),
            "f.yaml:7: spec.cost.perByte is not known, allowed: perRequest, perGiB");
}

TEST(Configuration, ReadsLimitsOfTheSource) {
  const auto parsed = ParseConfiguration(
      Replaced(kImages,
               "  cache:", "  limits: {requestsPerSecond: 9, bytesPerSecond: 1Ki}\n  cache:"),
      "f.yaml");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->datasets.at(0).spec.limits,
            (api::Limits{.requests_per_second = 9, .bytes_per_second = 1024}));
  EXPECT_EQ(
      WithImages("  cache:", "  limits: {requestsPerSecond: 0}\n  cache:"),
      "f.yaml:7: spec.limits.requestsPerSecond: '0', allowed: a whole number from 1 to 1000000");
  EXPECT_EQ(WithImages("  cache:", "  limits: {bytesPerSecond: 0}\n  cache:"),
            "f.yaml:7: spec.limits.bytesPerSecond: 0, allowed: a quantity above 0");
}

TEST(Configuration, KnowsTheFormats) {
  EXPECT_EQ(WithImages("  cache:", "  format: Zip\n  cache:"),
            "f.yaml:7: spec.format: 'Zip' is not known, allowed: Files, Tar, TarFiles, Ranges, "
            "Npy, Megatron");
  for (const std::string format : {"Tar", "Ranges", "Npy", "Megatron"}) {
    EXPECT_EQ(WithImages("  cache:", "  format: " + format + "\n  order: ImageFolder\n  cache:"),
              "f.yaml:8: spec.order: ImageFolder numbers files in class folders, and this format "
              "has none");
    EXPECT_EQ(WithImages("  cache:", "  format: " + format + "\n  order: List\n  cache:"), "none");
  }
  EXPECT_EQ(WithImages("  cache:", "  format: TarFiles\n  order: ImageFolder\n  cache:"), "none");
}

TEST(Configuration, ABucketHasAnAddress) {
  EXPECT_EQ(WithImages("file: {path: /data}", "s3: {bucket: b}"), "none");
  EXPECT_EQ(WithImages("file: {path: /data}", "s3: {prefix: a/}"),
            "f.yaml:6: spec.source.s3.bucket: missing or empty, allowed: the name of a bucket");
  EXPECT_EQ(WithImages("file: {path: /data}", "s3: {bucket: b, endpoint: minio}"),
            "f.yaml:6: spec.source.s3.endpoint: 'minio', allowed: http://… or https://…");
  EXPECT_EQ(WithImages("file: {path: /data}", "s3: {bucket: b, listing: /lists/x}"),
            "f.yaml:6: spec.source.s3.listing: keys do not begin with a slash: leave it out");
  EXPECT_EQ(WithImages("file: {path: /data}", "s3: {bucket: b, style: path}"),
            "f.yaml:6: spec.source.s3.style: 'path' is not known, allowed: Path, VirtualHost");
  EXPECT_EQ(WithImages("file: {path: /data}", "s3: {bucket: b, secretRef: {name: k}}"),
            "f.yaml:6: spec.source.s3.secretRef: is of a cluster; on one machine leave it "
            "out: the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and so on say the keys, "
            "or `--keys NAME=FOLDER`");
  std::string text(kImages);
  const std::string source = "file: {path: /data}";
  text.replace(text.find(source), source.size(),
               "s3: {bucket: b, prefix: a/, endpoint: https://h, region: r, style: VirtualHost, "
               "requesterPays: true, listing: lists/train.txt}");
  EXPECT_EQ(api::AddressOf(ParseConfiguration(text, "f.yaml")->datasets.at(0).spec.source),
            "s3://b/a/?endpoint=https%3A//h&region=r&style=virtual&requester-pays=true"
            "&listing=lists/train.txt");
}

TEST(Configuration, ChecksAPlansGoal) {
  EXPECT_EQ(WithPlan("  goal: {waiting: 2%}\n"), "none");
  EXPECT_EQ(WithPlan("  goal: {cost: \"12.5\"}\n"), "none");
  EXPECT_EQ(WithPlan("  goal: {waiting: 100%}\n"),
            "f.yaml:6: spec.goal.waiting: '100%', allowed: a share of the time, from 0 to below 1: "
            "2% or 0.02");
  EXPECT_EQ(WithPlan("  goal: {cost: much}\n"),
            "f.yaml:6: spec.goal.cost: 'much', allowed: an amount of money, 0 or more: 12.5");
  const std::string either = "set either waiting or cost";
  EXPECT_TRUE(WithPlan("  goal: {}\n").ends_with(either));
  EXPECT_TRUE(WithPlan("  goal: {waiting: 2%, cost: 1}\n").ends_with(either));
}

TEST(Configuration, ChecksAPlansNumbers) {
  EXPECT_EQ(WithPlan("  revisionHistoryLimit: -1\n"),
            "f.yaml:6: spec.revisionHistoryLimit: '-1', allowed: a whole number from 0 to 1000");
  EXPECT_EQ(WithPlan("  rollout: {paused: yes}\n"),
            "f.yaml:6: spec.rollout.paused: 'yes' is not known, allowed: true, false");
  EXPECT_EQ(
      WithPlan("  rollout: {abort: {whenBelowPredictedBy: \"2\"}}\n"),
      "f.yaml:6: spec.rollout.abort.whenBelowPredictedBy: '2', allowed: a number from 0 to 1");
  EXPECT_EQ(WithPlan("  rollout: {maxUnavailable: some}\n"),
            "f.yaml:6: spec.rollout.maxUnavailable: 'some', allowed: a count from 1 to 100000, or "
            "a share from 1% to 100%");
  for (const char* number : {"0", "0%", "101%", "100001", "-1", "2.5", "%", "99999999999"}) {
    EXPECT_NE(WithPlan("  rollout: {maxUnavailable: " + std::string(number) + "}\n"), "none")
        << number;
  }
  for (const char* number : {"1", "100000", "1%", "100%"}) {
    EXPECT_EQ(WithPlan("  rollout: {maxUnavailable: " + std::string(number) + "}\n"), "none")
        << number;
  }
  EXPECT_EQ(WithPlan("  jobs: [{name: a, sampler: {kind: Weighted}}]\n"),
            "f.yaml:6: spec.jobs[0].sampler.kind: 'Weighted' is not known, allowed: "
            "TorchDistributed, TorchRandom");
}

TEST(Configuration, RefusesWhatIsThereTwice) {
  const std::string twice = std::string(kImages) + "---\n" + std::string(kImages);
  EXPECT_EQ(ErrorOf(twice), "f.yaml:9: Dataset vision/images is there twice");
  const std::string plans = std::string(kPlan) + "---\n" + std::string(kPlan);
  EXPECT_EQ(ErrorOf(plans), "f.yaml:7: Dataset vision/images has two CachePlans");
  EXPECT_EQ(WithImages("kind: Dataset", "kind: Dataset\nkind: Dataset"),
            "f.yaml:3: kind is written twice");
}

TEST(Configuration, WhatIsMissingIsNamedWithWhatIsAllowed) {
  EXPECT_EQ(WithImages("apiVersion: optcache.io/v1alpha1\n", ""),
            "f.yaml:1: apiVersion: missing or empty, allowed: optcache.io/v1alpha1");
  EXPECT_EQ(WithImages("kind: Dataset\n", ""),
            "f.yaml:1: kind: missing or empty, allowed: Dataset, CachePlan");
  EXPECT_EQ(WithImages("path: /data", ""),
            "f.yaml:6: spec.source.file.path: missing or empty, allowed: a folder");
}

TEST(Configuration, APlanNamesADatasetOfItsNamespace) {
  auto configuration = ParseConfiguration(kPlan, "f.yaml");
  ASSERT_TRUE(configuration);
  EXPECT_EQ(CheckReferences(*configuration).message(),
            "f.yaml:5: spec.dataset: there is no Dataset vision/images in the files given");
  ASSERT_TRUE(Merge(*ParseConfiguration(kImages, "g.yaml"), *configuration).ok());
  EXPECT_TRUE(CheckReferences(*configuration).ok());
}

TEST(Configuration, RefusesWhatCouldGrow) {
  EXPECT_EQ(ErrorOf("a: &x [1]\nb: *x\n"),
            "f.yaml:1: anchors and aliases (& and *) are not allowed, write it out");
  EXPECT_EQ(ErrorOf(std::string(kMaxFileBytes + 1, ' ')),
            "f.yaml: larger than 1.00 MiB, split the file");
  EXPECT_EQ(ErrorOf(std::string(40, '[') + std::string(40, ']')),
            "f.yaml:1: nested more than 32 deep");
  std::string many;
  for (int i = 0; i < 1001; ++i)
    many += "--- 1\n";
  EXPECT_EQ(ErrorOf(many), "f.yaml:1001: more than 1000 documents");
}

TEST(Configuration, RefusesWhatIsNotYaml) {
  EXPECT_EQ(ErrorOf("kind: [\n").substr(0, 19), "f.yaml:2: not YAML:");
  EXPECT_EQ(ErrorOf(""), "f.yaml: empty, allowed: Dataset, CachePlan");
  EXPECT_EQ(ErrorOf(std::string_view("a\0b", 3)), "f.yaml: not a text file");
  EXPECT_EQ(ErrorOf("just words\n"), "f.yaml:1: document: not a mapping, allowed: {key: value}");
}

}  // namespace
}  // namespace optcache::config
