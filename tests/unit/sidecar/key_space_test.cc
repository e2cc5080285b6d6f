#include "sidecar/s3/key_space.h"

#include <gtest/gtest.h>

#include "unit/sidecar/s3_world.h"

namespace optcache::sidecar {
namespace {

TEST(KeySpace, JoinsDatasetsOfOneBucket) {
  S3World world;
  world.Add("data", "train/", {"b", "a"});
  world.Add("data", "test/", {"a"});
  world.Add("other", "", {"a"});
  const BucketView& bucket = *world.keys.Find("data");
  std::vector<std::pair<std::string, std::size_t>> found;
  std::string from;
  BucketView::Walk walk;
  while (const auto object = bucket.Next(from, walk)) {
    found.emplace_back(object->key, object->dataset);
    from = object->key + '\0';
  }
  EXPECT_EQ(found, (std::vector<std::pair<std::string, std::size_t>>{
                       {"test/a", 1}, {"train/a", 0}, {"train/b", 0}}));
  EXPECT_EQ(bucket.Find("train/b")->id, 0U);
  EXPECT_EQ(bucket.Find("test/a")->dataset, 1U);
  EXPECT_FALSE(bucket.Find("test/b"));
  EXPECT_EQ(world.keys.Find("nobody"), nullptr);
  EXPECT_EQ(world.keys.names(), (std::vector<std::string>{"data", "other"}));
}

TEST(KeySpace, TakesTheFirstOfTwoWithOneKey) {
  S3World world;
  world.Add("data", "", {"a"});
  world.Add("data", "", {"a"});
  EXPECT_EQ(world.keys.Find("data")->Find("a")->dataset, 0U);
  BucketView::Walk walk;
  EXPECT_EQ(world.keys.Find("data")->Next("", walk)->dataset, 0U);
}

TEST(KeySpace, TellsTheStoresOwnETag) {
  S3World world;
  world.Add("data", "", {"a"});
  EXPECT_EQ(ETagOf(world.manifests.front(), 0), "\"a\"");
  EXPECT_EQ(world.keys.Find("data")->Find("a")->modified_s, 784'111'777);
}

TEST(KeySpace, MakesAnETagWhereThereIsNone) {
  const auto etag_of = [](ByteCount size, const dataset::Validator& validator) {
    dataset::ManifestBuilder builder(dataset::Order::kList, {});
    EXPECT_TRUE(builder.Add({.path = "a", .size = size, .validator = validator}).ok());
    return ETagOf(std::move(builder).Finish().value(), 0);
  };
  const std::string etag = etag_of(10, {.modified_ns = 5});
  EXPECT_EQ(etag.size(), 42U);
  EXPECT_EQ(etag, etag_of(10, {.modified_ns = 5}));
  EXPECT_NE(etag, etag_of(10, {.modified_ns = 6}));
  EXPECT_NE(etag, etag_of(11, {.modified_ns = 5}));
  EXPECT_TRUE(etag_of(10, {.etag = "W/\"weak\""}).starts_with('"'));
}

}  // namespace
}  // namespace optcache::sidecar
