#include "sidecar/manifests/dataset_registry.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "dataset/manifest_builder.h"
#include "net/http_server.h"
#include "support/temp_dir.h"

namespace optcache::sidecar {
namespace {

std::string ManifestOf(std::string_view path) {
  dataset::ManifestBuilder builder(dataset::Order::kPath, {});
  EXPECT_TRUE(builder.Add({.path = path, .size = 10}).ok());
  return std::string(std::move(builder).Finish().value().bytes());
}

class DatasetRegistryTest : public testing::Test {
 protected:
  void SetUp() override {
    node_ = net::ListenHttp(loop_, "127.0.0.1:0", {},
                            [this](const net::HttpRequest&, const net::HttpResponder& respond) {
                              ++requests_;
                              respond({.status = 200, .body = served_});
                            })
                .value();
    Open();
  }
  void Open() {
    const DatasetSource birds{
        .name = "vision/birds", .store_uri = dir_.path(), .price = {.per_gib = 2}};
    registry_ = DatasetRegistry::Open({birds}, {}, dir_.Join("kept/manifests")).value();
  }
  // Until the dataset is served; returns what it was told it was.
  const ServedDataset* Fetch() {
    const ServedDataset* told = nullptr;
    registry_->FetchMissing(loop_, *http_,
                            {.urls = {"http://127.0.0.1:" + std::to_string(node_->port())}},
                            [&](const ServedDataset& dataset) {
                              told = &dataset;
                              loop_.Stop();
                            });
    const net::Timer limit = loop_.After(std::chrono::minutes(2), [this] { loop_.Stop(); });
    loop_.Run();
    return told;
  }
  const ServedDataset* dataset() const { return registry_->places().at(0).dataset.get(); }

  TempDir dir_;
  net::EventLoop loop_;
  std::string served_ = ManifestOf("a.jpg");
  int requests_ = 0;
  std::unique_ptr<net::HttpServer> node_;
  std::unique_ptr<net::HttpClient> http_ = net::MakeHttpClient(loop_);
  std::unique_ptr<DatasetRegistry> registry_;
};

TEST_F(DatasetRegistryTest, APlaceStandsEmptyUntilANodeGivesTheManifest) {
  EXPECT_EQ(dataset(), nullptr);
  const ServedDataset* told = Fetch();
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told, dataset());
  EXPECT_EQ(told->manifest().bytes(), served_);
  EXPECT_EQ(told->price(), dataset::StorePrice{.per_gib = 2});
}

TEST_F(DatasetRegistryTest, ASidecarThatIsStartedAgainGoesOnWithTheManifestItHad) {
  Fetch();
  served_ = ManifestOf("b.jpg");
  const int requests = requests_;
  Open();
  ASSERT_NE(dataset(), nullptr);
  EXPECT_EQ(dataset()->manifest().Path(0), "a.jpg");
  EXPECT_EQ(requests_, requests);
}

TEST_F(DatasetRegistryTest, ADamagedCopyIsReplacedByWhatANodeHas) {
  Fetch();
  dir_.Write("kept/manifests/vision_birds.manifest", "OPTCMANI but cut");
  Open();
  EXPECT_EQ(dataset(), nullptr);
  ASSERT_NE(Fetch(), nullptr);
  Open();
  ASSERT_NE(dataset(), nullptr);
  EXPECT_EQ(dataset()->manifest().bytes(), served_);
}

TEST_F(DatasetRegistryTest, CountsWhatIsAwaited) {
  const auto awaited = [this] {
    double value = -1;
    registry_->VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels&, double number) {
          if (name == "optcache_manifests_awaited") value = number;
        });
    return value;
  };
  EXPECT_EQ(awaited(), 1);
  Fetch();
  EXPECT_EQ(awaited(), 0);
}

TEST_F(DatasetRegistryTest, ADatasetIsFoundByItsNameWhereNoOtherIsCalledSo) {
  EXPECT_EQ(registry_->Find("").value(), 0U);
  EXPECT_EQ(registry_->Find("birds").value(), 0U);
  const auto sources = [this](std::initializer_list<const char*> names) {
    std::vector<DatasetSource> all;
    for (const char* name : names)
      all.push_back({.name = name, .store_uri = dir_.path()});
    return all;
  };
  const auto registry =
      DatasetRegistry::Open(sources({"vision/birds", "art/birds", "local/cats"}), {}, "").value();
  EXPECT_EQ(registry->Find("vision/birds").value(), 0U);
  EXPECT_EQ(registry->Find("art/birds").value(), 1U);
  EXPECT_EQ(registry->Find("cats").value(), 2U);
  for (const char* name : {"dogs", "speech/birds", "/birds", "vision/"}) {
    const auto none = registry->Find(name);
    ASSERT_FALSE(none) << name;
    EXPECT_EQ(none.error().code(), Code::kNotFound) << name;
  }
  EXPECT_EQ(registry->Find("").error().message(),
            "this sidecar serves several datasets; name one of: vision/birds, art/birds, "
            "local/cats");
  EXPECT_EQ(registry->Find("birds").error().code(), Code::kInvalidArgument);
  EXPECT_EQ(registry->Find("birds").error().message(),
            "this sidecar serves several datasets 'birds'; write one of: vision/birds, art/birds, "
            "local/cats");
}

}  // namespace
}  // namespace optcache::sidecar
