#include "sidecar/s3/key_index.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "unit/sidecar/s3_world.h"

namespace optcache::sidecar {
namespace {

dataset::Manifest ManifestWith(const std::vector<std::string>& paths) {
  S3World world;
  world.Add("bucket", "", paths);
  return std::move(world.manifests.front());
}

std::vector<std::string> KeysOf(const KeyIndex& index) {
  std::vector<std::string> keys;
  for (std::size_t place = 0; place < index.size(); ++place)
    keys.push_back(index.KeyAt(place));
  return keys;
}

TEST(KeyIndex, IsInTheOrderOfKeysWhateverTheNumbers) {
  for (const std::vector<std::string>& paths :
       {std::vector<std::string>{"a", "b/c", "b/d"}, {"b/d", "a", "b/c"}, {"a/x", "a-b/x", "b"}}) {
    const dataset::Manifest manifest = ManifestWith(paths);
    const KeyIndex index(manifest, "train/");
    std::vector<std::string> expected;
    for (const std::string& path : paths)
      expected.push_back("train/" + path);
    std::ranges::sort(expected);
    EXPECT_EQ(KeysOf(index), expected);
    for (SampleId id = 0; id < paths.size(); ++id)
      EXPECT_EQ(index.Find("train/" + paths[id]), id);
  }
}

TEST(KeyIndex, FindsNothingBesideIt) {
  const dataset::Manifest manifest = ManifestWith({"b", "d"});
  const KeyIndex index(manifest, "p/");
  for (const char* const key : {"", "b", "p/", "p/a", "p/c", "p/e", "p/b/", "q/b"})
    EXPECT_EQ(index.Find(key), std::nullopt) << key;
  EXPECT_EQ(index.LowerBound("p/c"), 1U);
  EXPECT_EQ(index.LowerBound("q"), 2U);
  for (const char* const key : {"", "p/b", "p/c", "p/d", "p/e"}) {
    for (std::size_t hint = 0; hint < 4; ++hint)
      EXPECT_EQ(index.LowerBound(key, hint), index.LowerBound(key)) << key << " " << hint;
  }
}

TEST(KeyIndex, NamesMembersByTheirArchives) {
  S3World world;
  world.AddArchives("bucket", dataset::Layout::kMembers);
  const KeyIndex index(world.manifests.front(), "p/");
  EXPECT_EQ(KeysOf(index), (std::vector<std::string>{"p/one.tar/a.jpg", "p/two.tar/a.jpg"}));
  EXPECT_EQ(index.Find("p/one.tar/a.jpg"), 1U);
  EXPECT_TRUE(index.IsArchive("p/one.tar"));
  EXPECT_TRUE(index.IsArchive("p/two.tar"));
  EXPECT_FALSE(index.IsArchive("p/three.tar"));
  EXPECT_FALSE(index.IsArchive("one.tar"));
}

TEST(KeyIndex, HasNoKeysForGroups) {
  S3World world;
  world.AddArchives("bucket", dataset::Layout::kGroups);
  const KeyIndex index(world.manifests.front(), "");
  EXPECT_EQ(index.size(), 0U);
  EXPECT_TRUE(index.IsArchive("one.tar"));
}

}  // namespace
}  // namespace optcache::sidecar
