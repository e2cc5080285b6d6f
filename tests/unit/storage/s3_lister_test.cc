#include "storage/internal/s3_lister.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mutex.h"
#include "base/random.h"
#include "base/utf8.h"
#include "support/seeds.h"

namespace optcache::storage::internal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What a bucket answers, by the documented rules of ListObjectsV2. Thread-safe.
class FakeBucket {
 public:
  explicit FakeBucket(std::set<std::string> keys, size_t keys_per_page = 1000)
      : keys_(std::move(keys)), keys_per_page_(keys_per_page) {}

  Result<S3Page> Fetch(const S3PageRequest& request) {
    {
      const MutexLock lock(mutex_);
      ++requests_;
      if (!request.start_after.ends_with('/') && !keys_.contains(request.start_after)) ++guesses_;
      if (failures_ > 0) {
        --failures_;
        return Error(failure_);
      }
    }
    if (refuses_ && !request.start_after.empty() && refuses_(request.start_after))
      return Error(Code::kInvalidArgument, "InvalidArgument: start-after");
    S3Page page;
    auto key = request.start_after < request.prefix ? keys_.lower_bound(request.prefix)
                                                    : keys_.upper_bound(request.start_after);
    while (key != keys_.end() && key->starts_with(request.prefix)) {
      const size_t slash =
          request.roll_up ? key->find('/', request.prefix.size()) : std::string::npos;
      if (page.keys.size() + page.common_prefixes.size() == keys_per_page_) {
        page.truncated = true;
        return page;
      }
      if (slash == std::string::npos) {
        page.keys.push_back({.key = *key, .size = key->size(), .etag = "\"" + *key + "\""});
        ++key;
        continue;
      }
      page.common_prefixes.push_back(key->substr(0, slash + 1));
      key = keys_.upper_bound(key->substr(0, slash) + "/\xff\xff\xff\xff");
    }
    return page;
  }

  S3PageSource source() {
    return [this](const S3PageRequest& request) { return Fetch(request); };
  }
  size_t requests() {
    const MutexLock lock(mutex_);
    return requests_;
  }
  // Requests that began at a key which is none.
  size_t guesses() {
    const MutexLock lock(mutex_);
    return guesses_;
  }
  // Where no listing may begin. To be called before the first one.
  void set_refuses(std::function<bool(const std::string& start_after)> refuses) {
    refuses_ = std::move(refuses);
  }
  bool IsKey(const std::string& text) const { return keys_.contains(text); }
  void Fail(int times, Status how) {
    const MutexLock lock(mutex_);
    failures_ = times;
    failure_ = std::move(how);
  }

 private:
  const std::set<std::string> keys_;
  const size_t keys_per_page_;
  std::function<bool(const std::string&)> refuses_;
  Mutex mutex_;
  size_t requests_ GUARDED_BY(mutex_) = 0;
  size_t guesses_ GUARDED_BY(mutex_) = 0;
  int failures_ GUARDED_BY(mutex_) = 0;
  Status failure_ GUARDED_BY(mutex_);
};

S3ListOptions Options(std::string prefix = "") {
  return {.prefix = std::move(prefix),
          .pages = {.backoff = {.first = std::chrono::microseconds(1),
                                .limit = std::chrono::microseconds(1)},
                    .deadline = Deadline::After(SystemClock(), std::chrono::minutes(1))},
          .progress = {}};
}

Result<ObjectListing> List(FakeBucket& bucket, const S3ListOptions& options) {
  return ListBucket(options, bucket.source(), SystemClock());
}

std::vector<std::string> PathsOf(const ObjectListing& listing) {
  std::vector<std::string> paths;
  for (const ListedObject& object : listing.objects)
    paths.push_back(object.path);
  return paths;
}

TEST(S3Lister, ASmallBucketIsOneRequest) {
  FakeBucket bucket({"b/2", "a", "b/1", "c d+e/x"});
  const ObjectListing listing = List(bucket, Options()).value();
  EXPECT_THAT(PathsOf(listing), ElementsAre("a", "b/1", "b/2", "c d+e/x"));
  EXPECT_THAT(listing.top_folders, ElementsAre("b", "c d+e"));
  EXPECT_EQ(listing.objects[1].info->size, 3U);
  EXPECT_EQ(listing.objects[1].info->validator.etag, "\"b/1\"");
  EXPECT_EQ(bucket.requests(), 1U);
}

TEST(S3Lister, PathsFollowThePrefix) {
  FakeBucket bucket({"train/a/1", "train/b", "train2/c", "train", "train/"});
  const ObjectListing listing = List(bucket, Options("train/")).value();
  EXPECT_THAT(PathsOf(listing), ElementsAre("a/1", "b"));
  EXPECT_THAT(listing.top_folders, ElementsAre("a"));
}

TEST(S3Lister, KeysThatEndWithASlashAreFolders) {
  FakeBucket bucket({"cat/", "cat/sub/", "dog/", "dog/1"});
  const ObjectListing listing = List(bucket, Options()).value();
  EXPECT_THAT(PathsOf(listing), ElementsAre("dog/1"));
  EXPECT_THAT(listing.top_folders, ElementsAre("cat", "dog"));
}

TEST(S3Lister, NothingThereIsNotFound) {
  FakeBucket bucket({"other/a"});
  const auto listing = List(bucket, Options("train/"));
  ASSERT_FALSE(listing);
  EXPECT_EQ(listing.error().code(), Code::kNotFound);
  EXPECT_THAT(listing.error().message(), HasSubstr("\"train/\""));
}

TEST(S3Lister, KeysThatNoManifestHoldsAreNoObjects) {
  FakeBucket bucket({"p/a/../b", "p//tmp", "p//", "p/c", "p/d/"});
  const auto listing = List(bucket, Options("p/"));
  ASSERT_TRUE(listing) << listing.error().message();
  EXPECT_THAT(PathsOf(*listing), ElementsAre("c"));
  EXPECT_THAT(listing->top_folders, ElementsAre("d")) << "they are in no folder";
  EXPECT_THAT(listing->unfit_keys, ElementsAre("/tmp", "a/../b"));
}

TEST(S3Lister, SuchKeysAloneAreNotNothing) {
  FakeBucket bucket({"a/../b"});
  const auto listing = List(bucket, Options());
  ASSERT_TRUE(listing) << listing.error().message();
  EXPECT_TRUE(listing->objects.empty());
  EXPECT_THAT(listing->unfit_keys, ElementsAre("a/../b"));
}

// Random trees: loose keys, folders of few and many keys, several levels, empty marked folders,
// names around the slash in the order of bytes.
std::set<std::string> RandomKeys(Random& random) {
  const std::vector<std::string> names = {"a", "a ", "a-", "a0", "b", "é", "zz", "\x7f"};
  std::set<std::string> keys;
  const std::uint64_t count = random.Below(400) + 1;
  while (keys.size() < count) {
    std::string key;
    for (std::uint64_t depth = random.Below(4); depth > 0; --depth)
      key += names[random.Below(names.size())] + "/";
    const bool marker = !key.empty() && random.Below(20) == 0;
    if (!marker) key += names[random.Below(names.size())] + std::to_string(random.Below(100));
    keys.insert(key);
  }
  return keys;
}

TEST(S3Lister, FindsEachKeyOnceHoweverItCuts) {
  const std::uint64_t seed = TestSeed(20260101);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  for (int round = 0; round < 60; ++round) {
    const std::set<std::string> keys = RandomKeys(random);
    std::vector<std::string> expected;
    std::set<std::string> folders;
    for (const std::string& key : keys) {
      if (!key.ends_with('/')) expected.push_back(key);
      if (key.contains('/')) folders.insert(key.substr(0, key.find('/')));
    }
    if (expected.empty()) continue;
    FakeBucket bucket(keys, random.Below(7) + 1);
    S3ListOptions options = Options();
    options.concurrent_max = static_cast<unsigned>(random.Below(6) + 1);
    options.keys_per_page = 1;  // every piece is worth a thread
    const ObjectListing listing = List(bucket, options).value();
    EXPECT_EQ(PathsOf(listing), expected);
    EXPECT_TRUE(std::ranges::equal(listing.top_folders, folders));
  }
}

std::set<std::string> Classes(int folders, int keys_each) {
  std::set<std::string> keys;
  for (int folder = 0; folder < folders; ++folder) {
    for (int key = 0; key < keys_each; ++key)
      keys.insert(fmt::format("train/n{:05}/{:06}.jpg", folder, key));
  }
  return keys;
}

TEST(S3Lister, CutsTakeFewRequestsMore) {
  // 100 pages at least; whoever comes first, pieces are worth a request each.
  FakeBucket bucket(Classes(100, 1000));
  EXPECT_EQ(List(bucket, Options())->objects.size(), 100'000U);
  EXPECT_LE(bucket.requests(), 250U);
}

TEST(S3Lister, ManySmallFoldersAreNotAskedForOneByOne) {
  FakeBucket bucket(Classes(50'000, 1));
  EXPECT_EQ(List(bucket, Options())->objects.size(), 50'000U);
  EXPECT_LE(bucket.requests(), 50U + 20U);
}

// Of one folder: numbers, digests, UUIDs and dates, with and without something behind them, so that
// some are the very guesses.
std::string FlatKey(std::uint64_t style, Random& random, int number) {
  switch (style) {
    case 0:
      return fmt::format("train/{:07}.jpg", number);
    case 1:
      return fmt::format("train/{:05}", number);
    case 2:
      return fmt::format("{}", number);
    case 3:
      return fmt::format("a/{:08x}", random.Below(1ULL << 32U));
    case 4:
      return fmt::format("{:02x}-{:04X}", random.Below(256), random.Below(1U << 16U));
    case 5:
      return fmt::format("2024-{:02}-{:02}_{:03}", random.Below(12) + 1, random.Below(28) + 1,
                         random.Below(1000));
    default: {
      std::string name;
      for (std::uint64_t length = random.Below(5) + 1; length > 0; --length)
        name += static_cast<char>(random.Below(255) + 1);
      return name.contains('/') || name == "." || name == ".." ? "x" : name;
    }
  }
}

TEST(S3Lister, FindsEachKeyOnceWhateverItGuesses) {
  const std::uint64_t seed = TestSeed(20261123);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  size_t guesses = 0;
  for (int round = 0; round < 70; ++round) {
    std::set<std::string> keys;
    const std::uint64_t style = random.Below(7);
    const int count = static_cast<int>(random.Below(3000)) + 1;
    for (int number = 0; number < count; ++number)
      keys.insert(FlatKey(style, random, number));
    FakeBucket bucket(keys, random.Below(20) + 2);
    S3ListOptions options = Options();
    options.concurrent_max = static_cast<unsigned>(random.Below(6) + 2);
    options.keys_per_page = 2;
    const auto listing = List(bucket, options);
    ASSERT_TRUE(listing) << style << ": " << listing.error().message();
    EXPECT_EQ(PathsOf(*listing), std::vector<std::string>(keys.begin(), keys.end())) << style;
    guesses += bucket.guesses();
  }
  EXPECT_GT(guesses, 20U);
}

TEST(S3Lister, AFlatFolderIsCutAtGuesses) {
  FakeBucket bucket(Classes(1, 100'000));
  EXPECT_EQ(List(bucket, Options())->objects.size(), 100'000U);
  EXPECT_GE(bucket.guesses(), 1U);
  EXPECT_LE(bucket.requests(), 100U + 80U) << "13 to 45 more, as threads take turns";
}

// As a strict server does, which takes nothing but text.
TEST(S3Lister, NamesOfLettersOfSeveralBytesAreListed) {
  std::set<std::string> keys;
  for (int number = 0; number < 40'000; ++number) {
    const auto code = static_cast<unsigned>(0x4e00 + number / 2);
    keys.insert(fmt::format("train/{}{}{}{}.jpg", static_cast<char>(0xe0U | code >> 12U),
                            static_cast<char>(0x80U | (code >> 6U & 0x3fU)),
                            static_cast<char>(0x80U | (code & 0x3fU)),
                            number % 2 == 0 ? "é" : "日"));
  }
  FakeBucket bucket(keys);
  bucket.set_refuses([](const std::string& start_after) { return !IsUtf8(start_after); });
  const auto listing = List(bucket, Options());
  ASSERT_TRUE(listing) << listing.error().message();
  EXPECT_EQ(PathsOf(*listing), std::vector<std::string>(keys.begin(), keys.end()));
}

TEST(S3Lister, AServerMayRefuseEveryGuess) {
  FakeBucket bucket(Classes(1, 100'000));
  bucket.set_refuses([&](const std::string& start_after) {
    return !start_after.ends_with('/') && !bucket.IsKey(start_after);
  });
  const auto listing = List(bucket, Options());
  ASSERT_TRUE(listing) << listing.error().message();
  EXPECT_EQ(listing->objects.size(), 100'000U);
  EXPECT_GE(bucket.guesses(), 2U) << "the first request is no guess, and counts";
  EXPECT_LE(bucket.requests(), 100U + 80U) << "a refusal costs as much as a page";
}

// A server that lists from the first key on where it is asked to begin at a key that it lacks.
TEST(S3Lister, AnAnswerThatIsWrongIsNoRefusalOfAGuess) {
  FakeBucket bucket(Classes(1, 100'000));
  const S3PageSource source = [&](S3PageRequest request) {
    if (!request.start_after.ends_with('/') && !bucket.IsKey(request.start_after))
      request.start_after.clear();
    return bucket.Fetch(request);
  };
  const auto listing = ListBucket(Options(), source, SystemClock());
  ASSERT_FALSE(listing);
  EXPECT_THAT(listing.error().message(), HasSubstr("it cannot list by start-after"));
}

TEST(S3Lister, FindsEachKeyOnceWhateverIsRefused) {
  const std::uint64_t seed = TestSeed(20261126);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  std::atomic<size_t> refused = 0;
  for (int round = 0; round < 70; ++round) {
    std::set<std::string> keys;
    const std::uint64_t style = random.Below(6);
    const int count = static_cast<int>(random.Below(3000)) + 1;
    for (int number = 0; number < count; ++number)
      keys.insert(FlatKey(style, random, number));
    FakeBucket bucket(keys, random.Below(20) + 2);
    bucket.set_refuses([&](const std::string& start_after) {
      const bool refuses = !start_after.ends_with('/') && !bucket.IsKey(start_after) &&
                           std::hash<std::string>()(start_after) % 2 == 0;
      if (refuses) ++refused;
      return refuses;
    });
    S3ListOptions options = Options();
    options.concurrent_max = static_cast<unsigned>(random.Below(6) + 2);
    options.keys_per_page = 2;
    const auto listing = List(bucket, options);
    ASSERT_TRUE(listing) << style << ": " << listing.error().message();
    EXPECT_EQ(PathsOf(*listing), std::vector<std::string>(keys.begin(), keys.end())) << style;
  }
  EXPECT_GT(refused, 20U);
}

TEST(S3Lister, ARefusalThatIsOfAllIsSaid) {
  FakeBucket bucket(Classes(1, 100'000));
  bucket.set_refuses(
      [](const std::string& start_after) { return start_after > "train/n00000/05"; });
  EXPECT_EQ(List(bucket, Options()).error().code(), Code::kInvalidArgument);
}

TEST(S3Lister, GuessesThatAreWrongAreFew) {
  // Every thousand keys begin with another letter far away, where no number leads.
  std::set<std::string> keys;
  for (int letter = 0; letter < 100; ++letter) {
    for (int number = 0; number < 1000; ++number) {
      keys.insert(fmt::format("{}{}0000000{:03}", static_cast<char>('0' + letter / 10),
                              static_cast<char>('a' + letter % 10), number));
    }
  }
  FakeBucket bucket(keys);
  EXPECT_EQ(List(bucket, Options())->objects.size(), 100'000U);
  EXPECT_LE(bucket.requests(), 100U + 50U);
}

TEST(S3Lister, APageThatFailsIsAskedForAgain) {
  FakeBucket bucket({"a", "b", "c"}, 2);
  bucket.Fail(40, {Code::kUnavailable, "slow down"});
  S3ListOptions options = Options();
  options.concurrent_max = 1;
  EXPECT_EQ(List(bucket, options)->objects.size(), 3U);
  EXPECT_EQ(bucket.requests(), 42U);
}

TEST(S3Lister, APageThatGoesOnFailingEndsIt) {
  FakeBucket bucket({"a", "b", "c"}, 2);
  bucket.Fail(1 << 30, {Code::kUnavailable, "slow down"});
  S3ListOptions options = Options();
  options.pages.first_patience = std::chrono::milliseconds(20);
  const auto listing = List(bucket, options);
  ASSERT_FALSE(listing);
  EXPECT_EQ(listing.error().code(), Code::kUnavailable);
  EXPECT_THAT(listing.error().message(), HasSubstr(" times: slow down"));
}

TEST(S3Lister, RefusalsAreNotRepeated) {
  FakeBucket bucket({"a"});
  bucket.Fail(1000, {Code::kPermissionDenied, "no"});
  EXPECT_EQ(List(bucket, Options()).error().code(), Code::kPermissionDenied);
  EXPECT_EQ(bucket.requests(), 1U);
}

TEST(S3Lister, AServerThatIgnoresStartAfterIsNamed) {
  const S3PageSource same_again = [](const S3PageRequest&) -> Result<S3Page> {
    return S3Page{
        .keys = {{.key = "a", .size = 1, .etag = ""}}, .common_prefixes = {}, .truncated = true};
  };
  const auto listing = ListBucket(Options(), same_again, SystemClock());
  ASSERT_FALSE(listing);
  EXPECT_EQ(listing.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(listing.error().message(), HasSubstr("it cannot list by start-after"));
}

TEST(S3Lister, AKeyOutsideThePrefixIsRefused) {
  for (const char* stray : {"u", "trained", "train0/b"}) {
    const S3PageSource odd = [stray](const S3PageRequest&) -> Result<S3Page> {
      return S3Page{.keys = {{.key = "train/a", .size = 1, .etag = ""},
                             {.key = stray, .size = 1, .etag = ""}},
                    .common_prefixes = {},
                    .truncated = false};
    };
    S3ListOptions options = Options();
    options.prefix = "train/";
    const auto listing = ListBucket(options, odd, SystemClock());
    ASSERT_FALSE(listing) << stray;
    EXPECT_THAT(listing.error().message(), HasSubstr(stray));
  }
}

// As of a bucket in which the first objects were deleted and older versions are kept.
TEST(S3Lister, EmptyPagesAreFollowedByTheirTokens) {
  std::vector<std::string> tokens;
  const S3PageSource late = [&](const S3PageRequest& request) -> Result<S3Page> {
    tokens.push_back(request.token);
    EXPECT_EQ(request.prefix, "train/");
    S3Page page = {.keys = {}, .common_prefixes = {}, .truncated = true};
    if (request.start_after == "train/a") {
      page.truncated = false;
    } else if (request.token == "3") {
      page.keys.push_back({.key = "train/a", .size = 1, .etag = ""});
    } else {
      page.next_token = std::to_string(tokens.size());
    }
    return page;
  };
  S3ListOptions options = Options("train/");
  options.concurrent_max = 1;
  const auto listing = ListBucket(options, late, SystemClock());
  ASSERT_TRUE(listing) << listing.error().message();
  EXPECT_EQ(PathsOf(*listing), std::vector<std::string>{"a"});
  EXPECT_THAT(tokens, ElementsAre("", "1", "2", "3", ""));
}

TEST(S3Lister, EmptyPagesWithoutEndAreRefused) {
  for (const bool same : {true, false}) {
    std::atomic<unsigned> asked = 0;
    const S3PageSource endless = [&](const S3PageRequest&) -> Result<S3Page> {
      const unsigned number = ++asked;
      return S3Page{.keys = {},
                    .common_prefixes = {},
                    .truncated = true,
                    .next_token = same ? "t" : std::to_string(number)};
    };
    const auto listing = ListBucket(Options(), endless, SystemClock());
    EXPECT_EQ(listing.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(asked, same ? 2U : kS3EmptyPagesMax);
  }
}

TEST(S3Lister, APageWithoutKeysThatPromisesMoreIsRefused) {
  const S3PageSource odd = [](const S3PageRequest&) -> Result<S3Page> {
    return S3Page{.keys = {}, .common_prefixes = {"x/"}, .truncated = true};
  };
  EXPECT_EQ(ListBucket(Options(), odd, SystemClock()).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace optcache::storage::internal
