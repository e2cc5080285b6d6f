#include "storage/listed_bucket.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_object_store.h"
#include "support/gzip.h"

namespace optcache::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class ListedBucketTest : public testing::Test {
 protected:
  void Put(const std::string& key, std::string content) {
    objects_.emplace_back(key, std::move(content));
  }
  // manifest.json beside files with these rows.
  void PutInventory(const std::vector<std::string>& files, std::string_view bucket = "bucket") {
    std::string entries;
    for (size_t i = 0; i < files.size(); ++i) {
      const std::string packed = StoredGzip(files[i]);
      const std::string key = fmt::format("inv/data/{}.csv.gz", i);
      entries +=
          fmt::format(R"({}{{"key": "{}", "size": {}}})", i == 0 ? "" : ", ", key, packed.size());
      Put(key, packed);
    }
    Put("inv/manifest.json", fmt::format(R"({{"sourceBucket": "{}", "fileFormat": "CSV",
                         "fileSchema": "Bucket, Key, Size, ETag", "files": [{}]}})",
                                         bucket, entries));
  }
  Result<ObjectListing> List(const std::string& key) {
    place_.key = key;
    const FakeObjectStore* opened = nullptr;
    ListedBucket store(std::make_unique<FakeObjectStore>("s3://bucket/data/"), place_,
                       [&]() -> Result<std::unique_ptr<ObjectStore>> {
                         auto bucket = std::make_unique<FakeObjectStore>();
                         bucket->set_completes_at_once(true);
                         for (const auto& [object, content] : objects_)
                           bucket->Put(object, content);
                         opened = bucket.get();
                         return bucket;
                       });
    return store.List(Deadline::After(SystemClock(), std::chrono::minutes(1)),
                      [&](std::uint64_t objects) {
                        told_.push_back(objects);
                        reads_ = opened->reads();
                      });
  }
  Status ErrorOf(const std::string& key) {
    const auto listing = List(key);
    EXPECT_FALSE(listing);
    return listing ? OkStatus() : listing.error();
  }

  KeyListPlace place_ = {.bucket = "bucket", .prefix = "data/", .key = {}};
  std::vector<std::pair<std::string, std::string>> objects_;
  std::vector<std::uint64_t> told_;
  size_t reads_ = 0;  // of the bucket, when it was told last
};

TEST_F(ListedBucketTest, ReadsAText) {
  Put("lists/a.txt", "data/b/1 2\t5\t\"e\"\ndata/c\t0\t\"f\"\nother/d\t1\n");
  const auto listing = List("lists/a.txt");
  ASSERT_TRUE(listing) << listing.error().message();
  ASSERT_EQ(listing->objects.size(), 2U);
  EXPECT_EQ(listing->objects[0].path, "b/1 2");
  EXPECT_EQ(listing->objects[0].info->validator.etag, "\"e\"");
  EXPECT_THAT(told_, ElementsAre(2));
}

TEST_F(ListedBucketTest, ReadsTheFilesOfAnInventory) {
  PutInventory(
      {"\"bucket\",\"data/b+c\",\"5\",\"e\"\n", "", "bucket,data/d,0,f\nbucket,o/d,1,g\n"});
  const auto listing = List("inv/manifest.json");
  ASSERT_TRUE(listing) << listing.error().message();
  ASSERT_EQ(listing->objects.size(), 2U);
  EXPECT_EQ(listing->objects[0].path, "b c");
  EXPECT_EQ(listing->objects[1].path, "d");
  EXPECT_EQ(listing->objects[1].info->validator.etag, "\"f\"");
  EXPECT_THAT(told_, ElementsAre(1, 1, 2));
}

TEST_F(ListedBucketTest, AFileIsReadInPieces) {
  PutInventory({"bucket,data/a,1,e\nbucket,data/b,2,f\nbucket,data/c,3,g\n"});
  const size_t file_bytes = objects_.front().second.size();
  place_.inventory_piece_bytes = 10;
  const auto listing = List("inv/manifest.json");
  ASSERT_TRUE(listing) << listing.error().message();
  ASSERT_EQ(listing->objects.size(), 3U);
  EXPECT_EQ(listing->objects[2].path, "c");
  EXPECT_EQ(listing->objects[2].info->validator.etag, "\"g\"");
  EXPECT_EQ(reads_, 1 + (file_bytes + 9) / 10) << "one of the manifest";
}

TEST_F(ListedBucketTest, SaysWhatIsWrongWithAText) {
  const std::string list = "the list list of s3://bucket/data/: ";
  Put("list", "data/a\t1\ndata/b\n");
  EXPECT_EQ(ErrorOf("list").code(), Code::kInvalidArgument);
  EXPECT_THAT(ErrorOf("list").message(), StartsWith(list + "line 2: the size is missing"));
  objects_ = {{"list", "train/a\t1\n"}};
  EXPECT_EQ(ErrorOf("list").code(), Code::kNotFound);
  EXPECT_THAT(ErrorOf("list").message(), StartsWith(list + "it names no objects below \"data/\""));
  objects_ = {{"list", ""}};
  EXPECT_EQ(ErrorOf("list").code(), Code::kNotFound) << "an empty list";
  EXPECT_EQ(ErrorOf("gone").code(), Code::kNotFound);
  place_.text_bytes_max = 100;
  objects_ = {{"list", std::string(101, '\n')}};
  EXPECT_EQ(ErrorOf("list").code(), Code::kInvalidArgument);
  EXPECT_THAT(ErrorOf("list").message(), HasSubstr("it has 101 B, and the limit is 100 B"));
}

TEST_F(ListedBucketTest, SaysWhatIsWrongWithAnInventory) {
  const auto error = [&] { return ErrorOf("inv/manifest.json"); };
  const std::string list = "the list inv/manifest.json of s3://bucket/data/: ";
  PutInventory({"bucket,data/a,1,e\n", "bucket,data/b,x,e\n"});
  EXPECT_EQ(error().code(), Code::kInvalidArgument);
  EXPECT_EQ(error().message(),
            list + "its file inv/data/1.csv.gz: row 1: \"x\" is no size in bytes");
  place_.inventory_bytes_max = 20;
  EXPECT_THAT(error().message(), HasSubstr("the inventory is longer than the limit of 20 B"));
  place_.inventory_bytes_max = 1_MiB;
  std::erase_if(objects_, [](const auto& object) { return object.first == "inv/data/1.csv.gz"; });
  EXPECT_EQ(error().code(), Code::kNotFound);
  EXPECT_THAT(error().message(), StartsWith(list + "its file inv/data/1.csv.gz: "));
  objects_.clear();
  PutInventory({"bucket,data/a,1,e\n"}, "another");
  EXPECT_EQ(error().message(),
            list + "it lists the bucket \"another\": give the inventory of \"bucket\"");
  objects_.clear();
  PutInventory({"bucket,data/a,1,e\n"});
  objects_[0].second.back() ^= 1;
  EXPECT_EQ(error().code(), Code::kDataLoss);
  EXPECT_THAT(error().message(), HasSubstr("it is no gzip, or is damaged"));
  objects_.clear();
  PutInventory({});
  EXPECT_EQ(error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace optcache::storage
