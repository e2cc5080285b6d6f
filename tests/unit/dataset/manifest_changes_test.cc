#include "dataset/manifest_changes.h"

#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "dataset/manifest_builder.h"
#include "support/seeds.h"

namespace optcache::dataset {
namespace {

Manifest ListOf(const std::vector<Object>& objects) {
  ManifestBuilder builder(Order::kList, {});
  for (const Object& object : objects)
    EXPECT_TRUE(
        builder.Add({.path = object.path, .size = object.size, .validator = object.validator})
            .ok());
  return std::move(builder).Finish().value();
}

TEST(ManifestChanges, AreNoneBetweenEquals) {
  const std::vector<Object> objects = {{.path = "a", .size = 1}, {.path = "b", .size = 2}};
  EXPECT_EQ(CompareManifests(ListOf(objects), ListOf(objects)), ManifestChanges{});
}

TEST(ManifestChanges, CountObjectsAndNameTheFirst) {
  const Manifest before = ListOf({{.path = "kept", .size = 1},
                                  {.path = "longer", .size = 1},
                                  {.path = "later", .size = 1, .validator = {.modified_ns = 5}},
                                  {.path = "gone/2", .size = 1},
                                  {.path = "gone/1", .size = 1}});
  const Manifest after = ListOf({{.path = "new/2", .size = 1},
                                 {.path = "later", .size = 1, .validator = {.modified_ns = 6}},
                                 {.path = "kept", .size = 1},
                                 {.path = "longer", .size = 2},
                                 {.path = "new/1", .size = 1},
                                 {.path = "new/0", .size = 1}});
  EXPECT_EQ(CompareManifests(before, after),
            (ManifestChanges{.added = {.count = 3, .first = "new/2"},
                             .changed = {.count = 2, .first = "later"},
                             .removed = {.count = 2, .first = "gone/2"}}));
}

TEST(ManifestChanges, AnotherETagIsAChange) {
  const auto with = [](const char* etag) {
    return ListOf({{.path = "a", .size = 1, .validator = {.etag = etag}}});
  };
  EXPECT_EQ(CompareManifests(with("\"1\""), with("\"2\"")).changed,
            (ChangedObjects{.count = 1, .first = "a"}));
}

TEST(ManifestChanges, AnotherOrderIsNone) {
  const Object a{.path = "a", .size = 1};
  const Object b{.path = "b", .size = 2};
  EXPECT_EQ(CompareManifests(ListOf({a, b}), ListOf({b, a})), ManifestChanges{});
}

TEST(ManifestChanges, OfArchivesAreThoseOfTheArchives) {
  const auto with = [](ByteCount size) {
    ManifestBuilder builder(Order::kPath, {}, Layout::kMembers);
    EXPECT_TRUE(builder.AddShard({.path = "s.tar", .size = size}).ok());
    for (const ByteCount offset : {ByteCount{0}, ByteCount{10}}) {
      const std::vector<Member> members = {{.name = "", .offset = offset, .size = 10}};
      EXPECT_TRUE(
          builder.Add({.path = offset == 0 ? "x" : "y", .shard = 0, .members = members}).ok());
    }
    return std::move(builder).Finish().value();
  };
  EXPECT_EQ(CompareManifests(with(100), with(200)).changed,
            (ChangedObjects{.count = 1, .first = "s.tar"}));
}

TEST(ManifestChanges, AreThoseThatMapsHave) {
  const std::uint64_t seed = TestSeed(7411);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  for (int round = 0; round < 50; ++round) {
    std::map<std::string, ByteCount> old_sizes;
    std::map<std::string, ByteCount> new_sizes;
    const auto fill = [&random](std::map<std::string, ByteCount>& sizes) {
      std::vector<Object> objects;
      for (std::uint64_t i = 0; i < 40; ++i) {
        const std::string path = std::to_string(random.Below(60));
        const ByteCount size = random.Below(3);
        if (sizes.emplace(path, size).second) objects.push_back({.path = path, .size = size});
      }
      return ListOf(objects);
    };
    const Manifest before = fill(old_sizes);
    const Manifest after = fill(new_sizes);
    std::uint64_t added = 0;
    std::uint64_t changed = 0;
    std::uint64_t removed = 0;
    for (const auto& [path, size] : new_sizes) {
      const auto was = old_sizes.find(path);
      if (was == old_sizes.end()) {
        ++added;
      } else if (was->second != size) {
        ++changed;
      }
    }
    for (const auto& [path, size] : old_sizes) {
      if (!new_sizes.contains(path)) ++removed;
    }
    const ManifestChanges changes = CompareManifests(before, after);
    EXPECT_EQ(changes.added.count, added);
    EXPECT_EQ(changes.changed.count, changed);
    EXPECT_EQ(changes.removed.count, removed);
  }
}

}  // namespace
}  // namespace optcache::dataset
