#include "cli/up/dataset_setup.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "dataset/manifest.h"

namespace optcache::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DatasetSetupTest : public testing::Test {
 protected:
  DatasetSetupTest()
      : folder_(testing::TempDir() + "setup_" +
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/data/x");
    std::filesystem::create_directories(folder_ + "/state/manifests");
    dataset_.name = "images";
    dataset_.spec.source = api::FileSource{.path = folder_ + "/data"};
    dataset_.spec.order = dataset::Order::kPath;
    dataset_.spec.capacity = {.percent = 50};
  }
  void Write(const std::string& path, const std::string& content) {
    ASSERT_TRUE(WriteFileAtomically(folder_ + "/" + path, content).ok());
  }
  Result<ReadyDataset> SetUpNow(bool reindex = false) {
    said_.clear();
    return SetUpDataset(dataset_, plan_,
                        {.state_dir = folder_ + "/state",
                         .reindex = reindex,
                         .say = [this](auto& line) { said_.push_back(line); }});
  }

  std::string folder_;
  config::Dataset dataset_;
  config::CachePlan plan_;
  std::vector<std::string> said_;
};

TEST_F(DatasetSetupTest, IndexesTheSource) {
  Write("data/x/a.jpg", "12345");
  Write("data/x/b.jpg", "123");
  plan_.spec.retention = api::Retention::kPin;
  dataset_.spec.limits = {.requests_per_second = 200};
  const auto ready = SetUpNow();
  ASSERT_TRUE(ready) << ready.error().ToString();
  EXPECT_EQ(ready->spec.name, "default/images");
  EXPECT_EQ(ready->spec.samples, 2U);
  EXPECT_EQ(ready->spec.bytes, 8U);
  EXPECT_EQ(ready->spec.capacity, 4U);
  EXPECT_EQ(ready->spec.retention, coordination::Retention::kPin);
  EXPECT_EQ(ready->spec.limits, coordination::StoreLimits{.requests = 200});
  EXPECT_EQ(ready->store, folder_ + "/data");
  EXPECT_EQ(ReadFile(ready->manifest_file, 1_MiB), *ready->manifest);
}

TEST_F(DatasetSetupTest, RefusesACapacityThatKeepsNoSample) {
  Write("data/x/a.jpg", std::string(400, 'a'));
  Write("data/x/b.jpg", std::string(200, 'b'));
  dataset_.spec.capacity = {.bytes = 30};
  const auto percent = SetUpNow();
  ASSERT_FALSE(percent);
  EXPECT_THAT(percent.error().message(), HasSubstr("did you mean 30%, or a number of bytes"));
  dataset_.spec.capacity = {.bytes = 299};
  ASSERT_FALSE(SetUpNow());
  dataset_.spec.capacity = {.bytes = 300};
  EXPECT_TRUE(SetUpNow());
}

TEST_F(DatasetSetupTest, FindsAManifestOfTheSameSourceAgain) {
  Write("data/x/a.jpg", "12345");
  ASSERT_TRUE(SetUpNow());
  Write("data/x/b.jpg", "123");
  EXPECT_EQ(SetUpNow()->spec.samples, 1U);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("indexed earlier")));
  EXPECT_EQ(SetUpNow(/*reindex=*/true)->spec.samples, 2U);
  dataset_.spec.include = {"**/b.jpg"};
  EXPECT_EQ(SetUpNow()->spec.samples, 1U);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("indexing"), HasSubstr("Left out: 1 object")));
}

TEST_F(DatasetSetupTest, NamesTheDatasetWhoseSourceIsMissingOrEmpty) {
  const auto empty = SetUpNow();
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error().message(), testing::StartsWith("dataset default/images: "));
  dataset_.spec.source = api::FileSource{.path = folder_ + "/nowhere"};
  const auto missing = SetUpNow();
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message(), HasSubstr("/nowhere"));
}

TEST_F(DatasetSetupTest, SaysWhatTheUserDoesNotGet) {
  Write("data/x/a.jpg", "12345");
  dataset_.spec.on_disk = true;
  dataset_.spec.placement.max_nodes = 3;
  dataset_.spec.capacity = {.bytes = 6};
  dataset_.spec.index_interval_seconds = 3600;
  EXPECT_EQ(SetUpNow()->notes.size(), 4U);
}

TEST_F(DatasetSetupTest, NotesDigestsWhereTheyAreAskedFor) {
  Write("data/x/a.jpg", "12345");
  const auto digest = [this] {
    return dataset::Manifest::Parse(*SetUpNow()->manifest).value().SampleDigest(0);
  };
  EXPECT_EQ(digest(), std::nullopt);
  dataset_.spec.verify = api::Verify::kDigest;
  EXPECT_EQ(digest(), dataset::Sha256Of(AsBytes("12345")));
  EXPECT_THAT(said_, ElementsAre(HasSubstr("indexing"))) << "the manifest of before has none";
  EXPECT_EQ(digest(), dataset::Sha256Of(AsBytes("12345")));
  EXPECT_THAT(said_, ElementsAre(HasSubstr("indexed earlier")));
  EXPECT_TRUE(SetUpNow()->notes.empty());
}

TEST_F(DatasetSetupTest, ReadsSeveralFilesAsOne) {
  Write("plan.yaml",
        "apiVersion: optcache.io/v1alpha1\nkind: CachePlan\nmetadata: {name: p}\n"
        "spec: {dataset: images}\n");
  EXPECT_THAT(ReadConfiguration({folder_ + "/plan.yaml"}).error().message(),
              HasSubstr("plan.yaml:4: spec.dataset: there is no Dataset default/images"));
  Write("data.yaml",
        "apiVersion: optcache.io/v1alpha1\nkind: Dataset\nmetadata: {name: images}\n"
        "spec: {source: {file: {path: /d}}, cache: {capacity: 1Gi}}\n");
  const auto configuration = ReadConfiguration({folder_ + "/plan.yaml", folder_ + "/data.yaml"});
  ASSERT_TRUE(configuration) << configuration.error().ToString();
  EXPECT_EQ(configuration->datasets.size(), 1U);
  EXPECT_THAT(ReadConfiguration({folder_ + "/data.yaml", folder_ + "/data.yaml"}).error().message(),
              HasSubstr("is there twice"));
}

}  // namespace
}  // namespace optcache::cli
