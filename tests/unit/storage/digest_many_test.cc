#include "storage/internal/digest_many.h"

#include <mutex>
#include <numeric>

#include <gtest/gtest.h>

#include "dataset/manifest_builder.h"
#include "storage/file_store.h"
#include "support/fake_object_store.h"
#include "support/temp_dir.h"

namespace optcache::storage::internal {
namespace {

class DigestManyTest : public testing::Test {
 protected:
  void SetUp() override {
    contents_ = {"", "one", std::string(9'000'000, 'x'), "four"};
    for (std::size_t i = 0; i < contents_.size(); ++i) {
      dir_.Write(std::to_string(i), contents_[i]);
      objects_.push_back({.path = std::to_string(i), .info = ObjectInfo{contents_[i].size(), {}}});
    }
    store_ = FileStore::Open({.root = dir_.path()}, SystemClock()).value();
  }
  Status Run(unsigned concurrent = 2) {
    digests_.assign(objects_.size(), {});
    return DigestMany(
        *store_,
        {.count = objects_.size(),
         .concurrent_max = concurrent,
         .deadline = Deadline::After(SystemClock(), std::chrono::minutes(1))},
        [this](size_t i) { return objects_[i]; },
        [this](size_t i, const dataset::Digest& digest) { digests_[i] = digest; },
        [this](size_t done) {
          const std::scoped_lock lock(mutex_);
          reported_ = std::max(reported_, done);
        });
  }

  TempDir dir_;
  std::vector<std::string> contents_;
  std::vector<ListedObject> objects_;
  std::unique_ptr<ObjectStore> store_;
  std::vector<dataset::Digest> digests_;
  std::mutex mutex_;
  size_t reported_ = 0;
};

TEST_F(DigestManyTest, GivesTheDigestOfEachObjectAlsoOfOneLongerThanAPiece) {
  const Status status = Run();
  ASSERT_TRUE(status.ok()) << status.message();
  for (std::size_t i = 0; i < contents_.size(); ++i)
    EXPECT_EQ(digests_[i], dataset::Sha256Of(AsBytes(contents_[i]))) << i;
  EXPECT_EQ(reported_, contents_.size());
}

TEST_F(DigestManyTest, AnObjectThatIsShorterThanListedIsAnError) {
  objects_[1].info->size = 10;
  EXPECT_FALSE(Run().ok());
}

TEST_F(DigestManyTest, TheFirstErrorIsTheOutcome) {
  objects_[3].path = "gone";
  const Status status = Run(1);
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_NE(status.message().find("gone"), std::string::npos);
}

TEST_F(DigestManyTest, AnObjectThatIsListedButNotThereHasTheDigestOfNothing) {
  objects_[1].info.reset();
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(digests_[1], dataset::Sha256Of({}));
}

class CompareSamplesTest : public testing::Test {
 protected:
  void SetUp() override {
    dataset::ManifestBuilder builder(dataset::Order::kPath, {});
    for (const char* path : {"a", "b", "c"}) {
      const std::string content = std::string("of ") + path;
      store_.Put(path, content, {.modified_ns = 5, .etag = {}});
      ASSERT_TRUE(builder
                      .Add({.path = path,
                            .size = content.size(),
                            .validator = {.modified_ns = 5},
                            .digest = dataset::Sha256Of(AsBytes(content))})
                      .ok());
    }
    manifest_.emplace(std::move(builder).Finish().value());
    store_.set_completes_at_once(true);
  }
  Status Compare(const std::vector<SampleId>& samples) {
    found_.assign(samples.size(), Error(Code::kInternal, "not told"));
    return CompareSamples(
        store_, *manifest_, samples,
        {.concurrent_max = 1, .deadline = Deadline(MonotonicTime::max())},
        [this](size_t i, Result<bool> same) { found_[i] = std::move(same); }, [](size_t) {});
  }

  FakeObjectStore store_;
  std::optional<dataset::Manifest> manifest_;
  std::vector<Result<bool>> found_;
};

TEST_F(CompareSamplesTest, ReadsWhatIsRightOnce) {
  ASSERT_TRUE(Compare({0, 2}).ok());
  EXPECT_EQ(found_, (std::vector<Result<bool>>{true, true}));
  EXPECT_EQ(store_.reads(), 2U);
}

TEST_F(CompareSamplesTest, ReadsWhatDiffersOnceMorePastCaches) {
  store_.DamageNext("a", "OF A");
  store_.Put("b", "OF B", {.modified_ns = 5, .etag = {}});
  ASSERT_TRUE(Compare({0, 1}).ok());
  EXPECT_EQ(found_, (std::vector<Result<bool>>{true, false}));
  EXPECT_EQ(store_.reads(), 4U);
  EXPECT_EQ(store_.fresh_reads(), 2U);
}

TEST_F(CompareSamplesTest, TellsOfObjectsThatWentOrChangedAndGoesOn) {
  store_.Remove("a");
  store_.Put("b", "of b", {.modified_ns = 6, .etag = {}});
  ASSERT_TRUE(Compare({0, 1, 2}).ok());
  EXPECT_EQ(found_[0].error().code(), Code::kNotFound);
  EXPECT_EQ(found_[1].error().code(), Code::kConflict);
  EXPECT_EQ(found_[2], true);
}

TEST_F(CompareSamplesTest, AnotherErrorIsTheOutcome) {
  store_.FailNext("b", {.status = {Code::kPermissionDenied, "no"}});
  EXPECT_EQ(Compare({0, 1, 2}).code(), Code::kPermissionDenied);
}

}  // namespace
}  // namespace optcache::storage::internal
