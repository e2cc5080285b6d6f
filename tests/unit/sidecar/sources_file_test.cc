#include "sidecar/clients/sources_file.h"

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/golden_file.h"
#include "support/surroundings.h"
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
  const Surroundings keys({{"AWS_ACCESS_KEY_ID", "AKIA"}, {"AWS_SECRET_ACCESS_KEY", "secret"}});
  ListedSource indexed = Listed("vision/images", "file:///data/./images/");
  indexed.source.manifest_file = "/var/lib/optcache/images.manifest";
  indexed.manifest_digest = std::string(64, 'a');
  indexed.source.patience = std::chrono::minutes(2);
  ListedSource kept = Listed("vision/bucket", "s3://bucket/prefix");
  kept.source.manifest_file = "/var/lib/optcache/bucket.manifest";
  kept.manifest_digest = std::string(64, 'b');
  ListedSource open = Listed("vision/open-bucket", "s3://open/a b?endpoint=https://s3.example.com");
  open.source.ambient_keys = false;
  ListedSource identity =
      Listed("vision/role",
             "s3://bucket/prefix?endpoint=https://s3.example.com&role-arn=arn&token-file=/t");
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
      identity,
      Listed("vision/unpacked", "s3://bucket?endpoint=https://storage.googleapis.com"),
      Listed("vision/broken", "s3://bucket?no-such=option"),
      Listed("vision/bytes", "/data/\xff"),
  };
  const std::string text = SourcesJson(sources, "/etc/ca.crt");
  ExpectGolden(text, "sidecar/sources.json");
  EXPECT_EQ(text.find("AKIA"), std::string::npos);
  EXPECT_EQ(text.find("secret"), std::string::npos);
}

std::string ListOfBucket(const std::string& more = "") {
  return SourcesJson({Listed("a", "s3://open/p?endpoint=https://s3.example.com" + more)}, "");
}

TEST(SourcesFile, ABucketForWhichThereAreNoKeysIsReadWithoutAny) {
  const Surroundings none;
  const std::string text = ListOfBucket();
  EXPECT_NE(text.find(R"("url": "https://s3.example.com/open/p/")"), std::string::npos) << text;
  EXPECT_EQ(text.find("kept"), std::string::npos) << text;
  EXPECT_NE(ListOfBucket("&requester-pays=true").find("withKeys"), std::string::npos);
}

TEST(SourcesFile, AnObjectsAddressIsTheUrlLessOneSlashAndItsPath) {
  const Surroundings none;
  const std::string bucket = "s3://open/p//?endpoint=https://s3.example.com";
  const std::string web = "https://store.example.com/p//";
  const auto has = [](const std::string& store, const std::string& keys, const std::string& url) {
    const std::string text = SourcesJson({Listed("a", store, keys)}, "");
    EXPECT_NE(text.find(R"("url": ")" + url + '"'), std::string::npos) << text;
  };
  for (const char* const keys : {"", "/keys"}) {
    has(bucket, keys, "https://s3.example.com/open/p//");
    has(web, keys, "https://store.example.com/p");
  }
}

TEST(SourcesFile, KeysOfAnyKindKeepABucket) {
  const TempDir dir;
  dir.Write("credentials", "[default]\naws_access_key_id = A\naws_secret_access_key = S\n");
  const std::map<std::string, std::map<std::string, std::string>> cases = {
      {"environment", {{"AWS_ACCESS_KEY_ID", "A"}, {"AWS_SECRET_ACCESS_KEY", "S"}}},
      {"profile", {{"AWS_SHARED_CREDENTIALS_FILE", dir.path() + "/credentials"}}},
      {"container", {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1/keys"}}},
      {"web identity", {{"AWS_WEB_IDENTITY_TOKEN_FILE", "/token"}}},
      {"machine", {{"AWS_EC2_METADATA_DISABLED", "false"}}},
      {"customer's key", {{"OPTCACHE_SSE_CUSTOMER_KEY", std::string(43, 'A') + "="}}}};
  for (const auto& [name, variables] : cases) {
    const Surroundings keys(variables);
    EXPECT_NE(ListOfBucket().find("withKeys"), std::string::npos) << name;
  }
}

TEST(SourcesFile, ABucketIsTrustedByWhatAwsToolsTrust) {
  const Surroundings trust({{"AWS_CA_BUNDLE", std::string("/etc/bundle.pem")}});
  EXPECT_NE(ListOfBucket().find(R"("caFile": "/etc/bundle.pem")"), std::string::npos);
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
