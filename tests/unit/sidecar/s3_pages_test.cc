#include "sidecar/s3/s3_pages.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "base/random.h"
#include "storage/s3_listing.h"
#include "support/seeds.h"
#include "unit/sidecar/s3_world.h"

namespace optcache::sidecar {
namespace {

struct Names {
  std::vector<std::string> keys;
  std::vector<std::string> prefixes;
  friend bool operator==(const Names&, const Names&) = default;
};

// All pages, as our own client of S3 reads them.
Names ReadAll(const S3World& world, ListQuery query, S3Operation operation) {
  Names names;
  for (int page = 0; page < 1000; ++page) {
    const S3Request request{.operation = operation, .bucket = "data", .key = {}, .list = query};
    const Listing listing = ListKeys(*world.keys.Find("data"), query);
    const auto read = storage::ParseS3Page(ListingPage(request, listing));
    EXPECT_TRUE(read.has_value()) << read.error().message();
    if (!read) break;
    EXPECT_LE(read->keys.size() + read->common_prefixes.size(), query.max_keys);
    for (const storage::S3Key& key : read->keys)
      names.keys.push_back(key.key);
    std::ranges::copy(read->common_prefixes, std::back_inserter(names.prefixes));
    if (!read->truncated) return names;
    query.after = listing.last;
    query.goes_on = true;
  }
  ADD_FAILURE() << "the listing does not end";
  return names;
}

// The same by definition.
Names Expected(const std::vector<std::string>& keys, const ListQuery& query) {
  std::set<std::string> found;
  std::set<std::string> prefixes;
  for (const std::string& key : keys) {
    if (!key.starts_with(query.prefix)) continue;
    const std::size_t at = query.delimiter.empty() ? std::string::npos
                                                   : key.find(query.delimiter, query.prefix.size());
    if (at == std::string::npos) {
      found.insert(key);
    } else {
      prefixes.insert(key.substr(0, at + query.delimiter.size()));
    }
  }
  return {.keys = {found.begin(), found.end()}, .prefixes = {prefixes.begin(), prefixes.end()}};
}

TEST(S3Pages, ListWhatTheDefinitionSaysPageByPage) {
  const std::uint64_t seed = TestSeed(77);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  for (int round = 0; round < 60; ++round) {
    std::set<std::string> made;
    for (int i = 0; i < 40; ++i) {
      std::string key;
      for (std::uint64_t step = random.Below(4) + 1; step > 0; --step)
        key += std::string(1, "ab/-+&<~"[random.Below(8)]) + (step > 1 ? "/" : "x");
      if (key.front() != '/' && key.find("//") == std::string::npos) made.insert(key);
    }
    made.insert("b/y");
    S3World world;
    const std::vector<std::string> keys(made.begin(), made.end());
    world.Add("data", "", keys);
    for (const char* const prefix : {"", "a", "a/", "b/", "zz"}) {
      for (const char* const delimiter : {"", "/", "/a"}) {
        const ListQuery query{.prefix = prefix,
                              .delimiter = delimiter,
                              .after = {},
                              .max_keys = random.Below(5) + 1,
                              .encodes_keys = random.Below(2) == 0};
        EXPECT_EQ(ReadAll(world, query, S3Operation::kListObjectsV2), Expected(keys, query));
        EXPECT_EQ(ReadAll(world, query, S3Operation::kListObjects), Expected(keys, query));
      }
    }
  }
}

TEST(S3Pages, GoOnAfterAKey) {
  S3World world;
  world.Add("data", "", {"a", "b/c", "b/d", "e"});
  const auto keys_after = [&](const std::string& after) {
    std::vector<std::string> keys;
    for (const FoundObject& object : ListKeys(*world.keys.Find("data"), {.after = after}).objects)
      keys.push_back(object.key);
    return keys;
  };
  EXPECT_EQ(keys_after("a"), (std::vector<std::string>{"b/c", "b/d", "e"}));
  EXPECT_EQ(keys_after("b/c0"), (std::vector<std::string>{"b/d", "e"}));
  EXPECT_EQ(keys_after("e"), (std::vector<std::string>{}));
}

TEST(S3Pages, OfNoKeysAreNotTruncated) {
  S3World world;
  world.Add("data", "", {"a"});
  EXPECT_FALSE(ListKeys(*world.keys.Find("data"), {.max_keys = 0}).truncated);
}

TEST(S3Pages, EscapeWhatXmlTakesForItsOwn) {
  EXPECT_EQ(EscapeXml("a<b>&\"c'\x01"), "a&lt;b&gt;&amp;&quot;c'&#x1;");
  EXPECT_EQ(EscapeXml("\u00e4\xff\U0001f600\xc3"), "\u00e4\ufffd\U0001f600\ufffd");
}

TEST(S3Pages, OfErrorsAreXmlWhateverAClientSent) {
  const std::string page = ErrorPage(
      {.status = 501, .code = "NotImplemented", .message = "not '\x01\xff'"}, "/d/\x02", "1");
  EXPECT_NE(page.find("<Message>not '\\u0001\\xff'</Message><Resource>/d/\\u0002<"),
            std::string::npos)
      << page;
}

TEST(S3Pages, NameTheOwnerWhereItIsAskedFor) {
  S3World world;
  world.Add("data", "", {"a"});
  const auto page_for = [&](std::string_view target) {
    const S3Request request = ParseS3Request("GET", target).value();
    return ListingPage(request, ListKeys(*world.keys.Find("data"), request.list));
  };
  EXPECT_NE(page_for("/data").find("<Owner><ID>optcache"), std::string::npos);
  EXPECT_NE(page_for("/data?list-type=2&fetch-owner=true").find("<Owner>"), std::string::npos);
  EXPECT_EQ(page_for("/data?list-type=2&fetch-owner=false").find("<Owner>"), std::string::npos);
  EXPECT_EQ(page_for("/data?list-type=2").find("<Owner>"), std::string::npos);
}

TEST(S3Pages, SayErrorsAndPlaces) {
  EXPECT_NE(ErrorPage({.status = 404, .code = "NoSuchKey", .message = "a<b"}, "/d/k", "2F")
                .find("<Code>NoSuchKey</Code><Message>a&lt;b</Message><Resource>/d/k</Resource>"
                      "<RequestId>2F</RequestId>"),
            std::string::npos);
  EXPECT_NE(LocationPage("eu-west-1").find(">eu-west-1</LocationConstraint>"), std::string::npos);
  EXPECT_NE(LocationPage("us-east-1").find("></LocationConstraint>"), std::string::npos);
  EXPECT_NE(BucketsPage({"one"}).find("<Bucket><Name>one</Name>"), std::string::npos);
  EXPECT_NE(VersioningPage().find("<VersioningConfiguration"), std::string::npos);
}

}  // namespace
}  // namespace optcache::sidecar
