#include "sidecar/sources_file.h"

#include <chrono>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/golden_file.h"
#include "support/temp_dir.h"

namespace optcache::sidecar {
namespace {

ListedSource Listed(std::string name, std::string store, std::string keys = "") {
  return {.source = {.name = std::move(name),
                     .store_uri = std::move(store),
                     .keys_folder = std::move(keys)},
          .manifest_digest = ""};
}

TEST(SourcesFile, SaysWhatATrainingProcessCanReadItself) {
  ListedSource indexed = Listed("vision/images", "file:///data/./images/");
  indexed.source.manifest_file = "/var/lib/optcache/images.manifest";
  indexed.manifest_digest = std::string(64, 'a');
  indexed.source.patience = std::chrono::minutes(2);
  ListedSource kept = Listed("vision/bucket", "s3://bucket/prefix");
  kept.source.manifest_file = "/var/lib/optcache/bucket.manifest";
  kept.manifest_digest = std::string(64, 'b');
  ListedSource open = Listed("vision/open-bucket", "s3://open/a b?endpoint=https://s3.example.com");
  open.source.ambient_keys = false;
  ListedSource paid = Listed("vision/paid-bucket", "s3://paid?requester-pays=true");
  paid.source.ambient_keys = false;
  const std::vector<ListedSource> sources = {
      indexed,
      Listed("vision/claim", "/mnt/optcache/vision/claim"),
      Listed("vision/web", "http://store.example.com/images"),
      Listed("vision/web-by-tls", "https://store.example.com/images"),
      Listed("vision/web-with-keys", "https://store.example.com/images", "/etc/keys"),
      kept,
      Listed("vision/bucket-with-keys", "s3://bucket/prefix", "/etc/keys"),
      open,
      paid,
      Listed("vision/bytes", "/data/\xff"),
  };
  ExpectGolden(SourcesJson(sources, "/etc/ca.crt"), "sidecar/sources.json");
}

TEST(SourcesFile, PathsAreAbsolute) {
  const std::string text = SourcesJson({Listed("a", "some/folder")}, "");
  EXPECT_NE(text.find(std::filesystem::current_path().string() + "/some/folder"), std::string::npos)
      << text;
}

TEST(SourcesFile, StandsBesideTheSocketAndReplacesAnother) {
  const TempDir dir;
  const std::string socket = dir.path() + "/sock";
  ASSERT_TRUE(WriteFileAtomically(socket + ".sources", "old").ok());
  const std::vector<ListedSource> sources = {Listed("a", "/data/a")};
  ASSERT_TRUE(WriteSources(socket, sources, "").ok());
  EXPECT_EQ(ReadFile(socket + ".sources", kSourcesBytesMax).value(), SourcesJson(sources, ""));
}

TEST(SourcesFile, OneThatIsTooLongIsNotThereAtAll) {
  const TempDir dir;
  const std::string socket = dir.path() + "/sock";
  ASSERT_TRUE(WriteFileAtomically(socket + ".sources", "old").ok());
  const std::vector<ListedSource> sources(300, Listed("a", "/" + std::string(4000, 'x')));
  EXPECT_EQ(WriteSources(socket, sources, "").code(), Code::kResourceExhausted);
  EXPECT_FALSE(std::filesystem::exists(socket + ".sources"));
}

}  // namespace
}  // namespace optcache::sidecar
