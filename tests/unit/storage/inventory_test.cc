#include "storage/inventory.h"

#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string InventoryManifest(std::string_view schema, std::string_view format = "CSV") {
  return fmt::format(
      R"({{"sourceBucket": "photos", "destinationBucket": "arn:aws:s3:::lists",
           "version": "2016-11-30", "fileFormat": "{}", "fileSchema": "{}",
           "files": [{{"key": "inv/data/1.csv.gz", "size": 7, "MD5checksum": "00"}},
                     {{"key": "inv/data/2.csv.gz", "size": 0, "MD5checksum": "00"}}]}})",
      format, schema);
}

constexpr std::string_view kAllColumns =
    "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, LastModifiedDate, ETag, StorageClass";

Result<ObjectListing> ParseRows(std::string_view schema, std::string_view text,
                                size_t piece = 1000) {
  const Inventory inventory = ParseInventory(InventoryManifest(schema)).value();
  KeyList keys("");
  InventoryRows rows(inventory, keys);
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size())))
    RETURN_IF_ERROR(rows.Add(text.substr(0, piece)));
  RETURN_IF_ERROR(rows.Finish());
  return std::move(keys).Take();
}

TEST(Inventory, ReadsTheManifest) {
  const auto inventory = ParseInventory(InventoryManifest(kAllColumns));
  ASSERT_TRUE(inventory) << inventory.error().message();
  EXPECT_EQ(inventory->bucket, "photos");
  EXPECT_EQ(inventory->columns, (InventoryColumns{.count = 9,
                                                  .key = 1,
                                                  .size = 5,
                                                  .bucket = 0,
                                                  .etag = 7,
                                                  .is_latest = 3,
                                                  .is_delete_marker = 4}));
  EXPECT_THAT(inventory->files, ElementsAre(InventoryFile{.key = "inv/data/1.csv.gz", .size = 7},
                                            InventoryFile{.key = "inv/data/2.csv.gz", .size = 0}));
}

TEST(Inventory, SaysWhatIsWrongWithAManifestAndWhatToDo) {
  const auto error_of = [](const std::string& json) {
    const auto inventory = ParseInventory(json);
    EXPECT_EQ(inventory.error().code(), Code::kInvalidArgument);
    return inventory.error().message();
  };
  for (const char* const json : {"", "[]", "7", "{}", R"({"files": 1})", "{\"files\": ["})
    EXPECT_THAT(error_of(json), HasSubstr("it is no manifest.json of an S3 Inventory")) << json;
  for (const char* const format : {"Parquet", "ORC", ""})
    EXPECT_THAT(error_of(InventoryManifest("Key, Size", format)),
                HasSubstr(fmt::format("the inventory is in \"{}\", and only CSV can be read: set "
                                      "CSV as the format",
                                      format)));
  EXPECT_THAT(error_of(InventoryManifest("Bucket, Key")), HasSubstr("add Size, and ETag"));
  EXPECT_THAT(error_of(InventoryManifest("Bucket, Size")), HasSubstr("no column Key"));
  EXPECT_THAT(error_of(InventoryManifest("Key, Size, Key")), HasSubstr("names Key twice"));
  const std::string start = R"({"fileFormat": "CSV", "fileSchema": "Key, Size", "files": [)";
  EXPECT_THAT(error_of(start + "7]}"), HasSubstr("is no object"));
  EXPECT_THAT(error_of(start + R"({"size": 7}]})"), HasSubstr("has no key"));
  EXPECT_THAT(error_of(start + R"({"key": "a", "size": -7}]})"), HasSubstr("\"a\" has no size"));
}

TEST(Inventory, ReadsRowsWhereverTheyAreCut) {
  const std::string_view text =
      "\"photos\",\"a/"
      "%22q%22+and%2Bplus.jpg\",\"v1\",\"true\",\"false\",\"5\",\"2026\",\"e1\",\"S\"\n"
      "\r\n"
      "photos,b,,true,false,0,2026,\"e2-3\",S\r\n"
      "\"photos\",\"c,\"\"d\"\"\",\"\",\"true\",\"\",\"7\",\"a\nb\",\"\",\"\"";
  for (const size_t piece : {1U, 2U, 5U, 1000U}) {
    const auto listing = ParseRows(kAllColumns, text, piece);
    ASSERT_TRUE(listing) << listing.error().message();
    ASSERT_EQ(listing->objects.size(), 3U);
    EXPECT_EQ(listing->objects[0].path, "a/\"q\" and+plus.jpg");
    EXPECT_EQ(listing->objects[0].info->size, 5U);
    EXPECT_EQ(listing->objects[0].info->validator.etag, "\"e1\"");
    EXPECT_EQ(listing->objects[1].path, "b");
    EXPECT_EQ(listing->objects[1].info->validator.etag, "\"e2-3\"");
    EXPECT_EQ(listing->objects[2].path, "c,\"d\"");
    EXPECT_FALSE(listing->objects[2].info->validator.known());
  }
}

TEST(Inventory, OlderVersionsAndDeleteMarkersAreLeftOut) {
  const auto listing = ParseRows("Key, IsLatest, IsDeleteMarker, Size",
                                 "a,true,false,1\nb,false,false,1\nc,true,true,\n");
  ASSERT_TRUE(listing) << listing.error().message();
  ASSERT_EQ(listing->objects.size(), 1U);
  EXPECT_EQ(listing->objects[0].path, "a");
}

TEST(Inventory, ErrorsNameTheRow) {
  const auto error_of = [](std::string_view schema, const std::string& text) {
    const auto listing = ParseRows(schema, text);
    EXPECT_EQ(listing.error().code(), Code::kInvalidArgument) << text;
    return listing.error().message();
  };
  EXPECT_THAT(error_of("Key, Size", "a,1\nb\n"),
              HasSubstr("row 2: it has 1 fields, and fileSchema of manifest.json names 2"));
  EXPECT_THAT(error_of("Key, Size", "a,x\n"), HasSubstr("row 1: \"x\" is no size"));
  EXPECT_THAT(error_of("Key, Size", "a,\n"), HasSubstr("row 1: \"\" is no size"));
  EXPECT_THAT(error_of("Key, Size", "a%2,1\n"), HasSubstr("the key a%2 is badly encoded"));
  EXPECT_THAT(error_of("Key, Size", ",1\n"), HasSubstr("a key of 0 bytes"));
  EXPECT_THAT(error_of("Key, Size", std::string(1025, 'k') + ",1\n"),
              HasSubstr("a key of 1025 bytes"));
  EXPECT_THAT(error_of("Bucket, Key, Size", "other,a,1\n"),
              HasSubstr("it is of the bucket \"other\", and the inventory of \"photos\""));
  EXPECT_THAT(error_of("Key, IsLatest, Size", "a,yes,1\n"),
              HasSubstr("\"yes\" is neither true nor false"));
  EXPECT_THAT(error_of("Key, Size", "a\"b,1\n"), HasSubstr("a quote within a field"));
  EXPECT_THAT(error_of("Key, Size", "\"a\"b,1\n"), HasSubstr("something follows the quote"));
  EXPECT_THAT(error_of("Key, Size", "a\rb,1\n"), HasSubstr("a carriage return within it"));
  EXPECT_THAT(error_of("Key, Size", "a,1\n\"b"), HasSubstr("row 2: the file ends within a field"));
  EXPECT_THAT(error_of("Key, Size, ETag", "a,1,a\x01\n"), HasSubstr("an ETag that is none"));
  EXPECT_THAT(error_of("Key, Size", "\"" + std::string(kInventoryRowBytesMax, 'x')),
              HasSubstr("it is longer than 65536 bytes"));
}

}  // namespace
}  // namespace optcache::storage
