#include "cli/convert/dlcpod.h"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "dataset/glob.h"
#include "support/golden_file.h"
#include "support/source_dir.h"

namespace optcache::cli {
namespace {

using Json = nlohmann::json;

config::DlcPod Parsed(std::string_view text) {
  auto pods = config::ParseDlcPods(text, "pod.yaml");
  EXPECT_TRUE(pods.has_value()) << pods.error().ToString();
  return pods ? pods->front() : config::DlcPod{};
}

std::vector<YamlDocument> Converted(const config::DlcPod& pod, const std::string& region = "") {
  auto documents = ConvertDlcPod(pod, region);
  EXPECT_TRUE(documents.has_value()) << documents.error().ToString();
  return documents.value_or(std::vector<YamlDocument>{});
}

// A pod with one job that reads these lists of keys, in YAML.
config::DlcPod PodOf(const std::string& keys) {
  return Parsed(
      "apiVersion: docgroup.com/v1alpha1\n"
      "kind: DLCPod\n"
      "metadata: {name: pod}\n"
      "spec:\n"
      "  jobs:\n"
      "  - {name: job, image: i, datasource: {name: d, bucket: b, keys: " +
      keys + "}, qos: {usecache: true}}\n");
}

class DlcPodGolden : public testing::TestWithParam<const char*> {};

TEST_P(DlcPodGolden, IsConverted) {
  const std::string name = std::string("cli/dlcpod/") + GetParam();
  const auto text = ReadFile(InRepository("tests/golden/" + name + ".in.yaml"), 1_MiB);
  ASSERT_TRUE(text.has_value());
  ExpectGolden(ToYaml(Converted(Parsed(*text))), name + ".yaml");
}

INSTANTIATE_TEST_SUITE_P(All, DlcPodGolden, testing::Values("several", "uncached"));

// What becomes of a list of keys: prefix and patterns.
Json SourceOf(const std::string& samples) {
  const Json dataset =
      Json::parse(Converted(PodOf("{train: {samples: " + samples + "}}")).front().json);
  Json source = Json::array({dataset["spec"]["source"]["s3"].value("prefix", "")});
  for (const Json& pattern : dataset["spec"].value("include", Json::array()))
    source.push_back(pattern);
  return source;
}

TEST(DlcPod, KeysBecomeTheirCommonFolderAndPatterns) {
  EXPECT_EQ(SourceOf("[a/b/]"), Json::array({"a/b/"}));
  EXPECT_EQ(SourceOf("[a/b]"), Json::array({"a/b/"}));
  EXPECT_EQ(SourceOf("[a/b.csv]"), Json::array({"a/", "b.csv/**"}));
  EXPECT_EQ(SourceOf("[b.csv]"), Json::array({"", "b.csv/**"}));
  EXPECT_EQ(SourceOf("['']"), Json::array({""}));
  EXPECT_EQ(SourceOf("[a/b/c/, a/b/d/]"), Json::array({"a/b/", "c/**", "d/**"}));
  EXPECT_EQ(SourceOf("[a/b/c/, a/x.csv, a/b/]"), Json::array({"a/", "b/c/**", "x.csv/**", "b/**"}));
  EXPECT_EQ(SourceOf("[a/b/, a/]"), Json::array({"a/"}));  // all of it
  EXPECT_EQ(SourceOf("[abc/, abd/]"), Json::array({"", "abc/**", "abd/**"}));
  EXPECT_EQ(SourceOf("[a/, '']"), Json::array({""}));
}

// What DLCache reads of these names, too.
TEST(DlcPod, AKeyWithADotIsAnObjectOrAFolder) {
  const Json source = SourceOf("[data/v1.0, data/v2, data/a.tar]");
  ASSERT_EQ(source, Json::array({"data/", "v1.0/**", "v2/**", "a.tar/**"}));
  const auto include = dataset::GlobSet::Compile({source.begin() + 1, source.end()});
  ASSERT_TRUE(include.has_value());
  for (const char* const path : {"v1.0/1.jpg", "v1.0/dogs/1.jpg", "v2/1.jpg", "a.tar"})
    EXPECT_TRUE(include->Matches(path)) << path;
  for (const char* const path : {"a.tar.idx", "v1.01/1.jpg", "v3/a.tar"})
    EXPECT_FALSE(include->Matches(path)) << path;
}

// As many as patterns that a Dataset takes.
TEST(DlcPod, ManyObjectsAreKeysOfOneDataset) {
  std::string keys = "[s/0.tar";
  for (int i = 1; i < 64; ++i)
    keys += fmt::format(", s/{}.tar", i);
  EXPECT_EQ(SourceOf(keys + "]").size(), 1U + 64);
}

// Each remark in a line of its own.
std::string RemarksOn(const std::string& samples) {
  const auto documents = Converted(PodOf("{train: {samples: " + samples + "}}"));
  return fmt::format("{}", fmt::join(documents.front().remarks, "\n"));
}

TEST(DlcPod, ARemarkSaysWhereDlcacheReadsMore) {
  EXPECT_THAT(RemarksOn("[s/shard-1.tar, s/more, s/shard-2.tar]"),
              testing::HasSubstr(
                  "\nDLCache reads every key that begins with s/more. This Dataset reads the "
                  "folder s/more/.\n"
                  "DLCache reads every key that begins with s/shard-1.tar or s/shard-2.tar. This "
                  "Dataset reads only objects and folders of exactly that name, and not "
                  "s/shard-1.tar.idx, for example."));
  const auto none = testing::Not(testing::HasSubstr("DLCache reads every key"));
  EXPECT_THAT(RemarksOn("[s/v1.0/, t/]"), none);
  EXPECT_THAT(RemarksOn("[s/, s/shard-1.tar, s/more]"), none);  // the folder has them all
  EXPECT_THAT(RemarksOn("['', shard-1.tar]"), none);
}

TEST(DlcPod, RegionOfTheCallerIsWrittenAndNotAskedFor) {
  config::DlcPod pod = PodOf("{train: {samples: [a/]}}");
  pod.secret = "keys";
  const auto told = Converted(pod, "eu-west-1");
  EXPECT_EQ(Json::parse(told.front().json)["spec"]["source"]["s3"]["region"], "eu-west-1");
  EXPECT_EQ(ToYaml(told).find("region_name"), std::string::npos);
  EXPECT_NE(ToYaml(Converted(pod)).find("region_name"), std::string::npos);
}

TEST(DlcPod, JobsWithTheSameDataSourceShareItsDataset) {
  config::DlcPod pod = PodOf("{train: {samples: [a/]}}");
  pod.jobs.push_back(pod.jobs.front());
  pod.jobs.back().name = "second";
  const auto shared = Converted(pod);
  ASSERT_EQ(shared.size(), 2U);
  const Json job = Json::parse(shared.back().json);
  EXPECT_EQ(job["spec"]["template"]["metadata"]["annotations"],
            Json::parse(R"({"optcache.io/dataset": "d-train"})"));

  pod.jobs.back().bucket = "other";
  const auto refused = ConvertDlcPod(pod, "");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  EXPECT_NE(refused.error().message().find("a Dataset d-train"), std::string::npos);
}

// The names of the documents, Datasets and Jobs.
std::vector<std::string> NamesOf(const std::vector<config::DlcPod>& pods) {
  const auto documents = ConvertDlcPods(pods, "");
  EXPECT_TRUE(documents.has_value()) << documents.error().ToString();
  std::vector<std::string> names;
  for (const YamlDocument& document : documents.value_or(std::vector<YamlDocument>{}))
    names.push_back(Json::parse(document.json)["metadata"]["name"]);
  return names;
}

std::string RefusalOf(const std::vector<config::DlcPod>& pods) {
  const auto refused = ConvertDlcPods(pods, "");
  if (refused) return "none";
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  return refused.error().message();
}

using Names = std::vector<std::string>;

TEST(DlcPods, WithoutNamesOfSourcesEachPodHasItsOwnDataset) {
  config::DlcPod first = PodOf("{train: {samples: [a/]}}");
  first.jobs.front().source_name = "";
  config::DlcPod second = first;
  second.name = "Second.pod";
  second.jobs.front().bucket = "other";
  EXPECT_EQ(NamesOf({first, second}),
            (Names{"pod-job-train", "pod", "second-pod-job-train", "Second.pod"}));
}

TEST(DlcPods, ANameThatIsTooLongIsCutAndStaysItsOwn) {
  config::DlcPod first = PodOf("{validation: {manifests: [a/]}}");
  first.jobs.front().source_name = "";
  first.name = std::string(50, 'p') + "1";
  config::DlcPod second = first;
  second.name.back() = '2';
  const Names names = NamesOf({first, second});
  ASSERT_EQ(names.size(), 4U);
  EXPECT_EQ(names[0].size(), 63U) << names[0];  // as the CRD allows
  EXPECT_TRUE(names[0].ends_with("-validation-manifests")) << names[0];
  EXPECT_NE(names[0], names[2]);
}

TEST(DlcPods, WithTheSameDataSourceShareItsDataset) {
  const config::DlcPod first = PodOf("{train: {samples: [a/]}}");
  config::DlcPod second = first;
  second.name = "second";
  EXPECT_EQ(NamesOf({first, second}), (Names{"d-train", "pod", "second"}));
  EXPECT_EQ(NamesOf({first, first}), (Names{"d-train", "pod"}));
  second.name_space = "default";  // kubectl may have been told another for `first`
  EXPECT_EQ(NamesOf({first, second}), (Names{"d-train", "pod", "d-train", "second"}));
}

TEST(DlcPods, OfOneNameWithAnotherContentAreRefused) {
  const config::DlcPod first = PodOf("{train: {samples: [a/]}}");
  config::DlcPod second = PodOf("{train: {samples: [b/]}}");
  second.name = "second";
  EXPECT_EQ(RefusalOf({first, second}),
            "DLCPod second: two jobs have a datasource that makes a Dataset d-train, with another "
            "bucket, another secret or other keys: give one another datasource.name");
  second.name_space = "vision";  // another Dataset
  EXPECT_EQ(NamesOf({first, second}), (Names{"d-train", "pod", "d-train", "second"}));
  second.name_space = "default";  // which kubectl takes for `first`, too
  EXPECT_THAT(RefusalOf({first, second}), testing::StartsWith("DLCPod second: two jobs have"));
  EXPECT_THAT(RefusalOf({second, first}), testing::StartsWith("DLCPod pod: two jobs have"));

  config::DlcPod same_name = first;
  same_name.node_name = "worker-1";
  EXPECT_EQ(RefusalOf({first, same_name}),
            "DLCPod pod: another DLCPod has this name, and differs: give one another "
            "metadata.name");
}

TEST(DlcPod, APodHasNoMoreDatasetsThanTheInjectorTakes) {
  config::DlcPod pod = PodOf("{train: {samples: [a/]}}");
  for (int more = 0; more < 15; ++more) {
    pod.jobs.push_back(pod.jobs.front());
    pod.jobs.back().source_name += std::to_string(more);
  }
  EXPECT_EQ(Converted(pod).size(), 17U);
  pod.jobs.push_back(pod.jobs.front());
  pod.jobs.back().source_name = "one-more";
  const auto refused = ConvertDlcPod(pod, "");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  EXPECT_NE(refused.error().message().find("a pod can use 16 Datasets"), std::string::npos);
}

TEST(DlcPod, KeysThatWouldBePatternsAreRefused) {
  const auto refused = ConvertDlcPod(PodOf("{train: {samples: [a/x*y/, b/]}}"), "");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  EXPECT_NE(refused.error().message().find("keys of Dataset d-train: key 'a/x*y/': * and ? stand"),
            std::string::npos);
  EXPECT_EQ(SourceOf("[a/x*y/]"), Json::array({"a/x*y/"}));  // a prefix is none
}

TEST(DlcPod, AContainerWithoutKeysReadsTheBucket) {
  config::DlcPod pod = PodOf("{}");
  pod.secret = "keys";
  const auto documents = Converted(pod);
  ASSERT_EQ(documents.size(), 1U);
  EXPECT_NE(ToYaml(documents).find("# job: datasource.keys is empty"), std::string::npos);
  const Json spec = Json::parse(documents.front().json)["spec"]["template"]["spec"];
  EXPECT_EQ(spec["containers"][0]["volumeMounts"].back()["mountPath"], "/secret");
}

TEST(DlcPod, WhatAContainerSetsItselfStays) {
  config::DlcPod pod = Parsed(R"(apiVersion: docgroup.com/v1alpha1
kind: DLCPod
metadata: {name: pod}
spec:
  volumes: [{name: dev-shm, emptyDir: {medium: Memory, sizeLimit: 2Gi}}]
  jobs:
  - name: job
    image: i
    env: [{name: JOBNAME, value: mine}]
    volumeMounts: [{name: dev-shm, mountPath: /dev/shm}]
    datasource: {bucket: b}
)");
  const Json spec = Json::parse(Converted(pod).back().json)["spec"]["template"]["spec"];
  EXPECT_EQ(spec["volumes"].size(), 1U);
  EXPECT_EQ(spec["volumes"][0]["emptyDir"]["sizeLimit"], "2Gi");
  EXPECT_EQ(spec["containers"][0]["env"], Json::parse(R"([{"name": "JOBNAME", "value": "mine"}])"));
  EXPECT_EQ(spec["containers"][0]["volumeMounts"].size(), 1U);
}

TEST(DlcPod, TextInACommentCannotEndIt) {
  const config::DlcPod pod = PodOf(R"({train: {samples: ["a\nkind: Secret"]}})");
  const std::string yaml = ToYaml(Converted(pod));
  EXPECT_EQ(yaml.find("\nkind: Secret"), std::string::npos) << yaml;
}

}  // namespace
}  // namespace optcache::cli
