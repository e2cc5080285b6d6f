#include "storage/sample_read.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "dataset/manifest_builder.h"
#include "support/fake_object_store.h"
#include "support/read_waiter.h"

namespace optcache::storage {
namespace {

using dataset::Layout;
using dataset::Manifest;
using dataset::ManifestBuilder;
using dataset::Member;

const std::string kShard = "HHHHjjjjjj--HHc-";  // two members between what stands for headers
const std::vector<Member> kMembers = {{.name = "jpg", .offset = 4, .size = 6},
                                      {.name = "cls", .offset = 14, .size = 1}};

Manifest Groups() {
  ManifestBuilder builder(dataset::Order::kPath, {}, Layout::kGroups);
  EXPECT_TRUE(
      builder.AddShard({.path = "s.tar", .size = kShard.size(), .validator = {5, "\"e\""}}).ok());
  EXPECT_TRUE(builder.Add({.path = "k", .validator = {}, .digest = {}, .members = kMembers}).ok());
  return std::move(builder).Finish().value();
}

std::string ReadAll(ObjectStore& store, const Manifest& manifest, SampleId sample) {
  std::string into(manifest.Size(sample), '?');
  const SampleRange range = RangeOf(manifest, sample);
  Destination destination;
  LayOut(manifest, sample, std::as_writable_bytes(std::span(into)), destination);
  EXPECT_EQ(destination.size(), range.length());
  if (!NeedsRead(manifest, range)) return into;
  EXPECT_TRUE(ReadWaiter()
                  .Run(store, RequestFor(manifest, range.object, range.begin,
                                         std::move(destination), Deadline(MonotonicTime::max())))
                  .status.ok());
  return into;
}

TEST(SampleRead, JoinsMembersByOneRead) {
  FakeObjectStore store;
  store.Put("s.tar", kShard, {5, "\"e\""});
  store.set_completes_at_once(true);
  const Manifest manifest = Groups();
  const std::string expected = dataset::MembersHead("k", kMembers) + "jjjjjj" +
                               std::string(2, '\0') + "c" + std::string(7, '\0');
  EXPECT_EQ(ReadAll(store, manifest, 0), expected);
  EXPECT_EQ(store.reads(), 1);
  EXPECT_EQ(RangeOf(manifest, 0).begin, 4);
  EXPECT_EQ(RangeOf(manifest, 0).end, 15);
}

TEST(SampleRead, ReadsObjectsWholeAndEmptyOnesToo) {
  ManifestBuilder builder(dataset::Order::kPath, {});
  ASSERT_TRUE(builder.Add({.path = "a", .size = 3, .validator = {}, .digest = {}}).ok());
  ASSERT_TRUE(builder.Add({.path = "b", .size = 0, .validator = {}, .digest = {}}).ok());
  const Manifest manifest = std::move(builder).Finish().value();
  FakeObjectStore store;
  store.Put("a", "abc");
  store.Put("b", "");
  store.set_completes_at_once(true);
  EXPECT_EQ(ReadAll(store, manifest, 0), "abc");
  EXPECT_EQ(ReadAll(store, manifest, 1), "");
  EXPECT_EQ(store.reads(), 2);
}

TEST(SampleRead, ReadsMembersAsTheyAreAndNothingForEmptyOnes) {
  ManifestBuilder builder(dataset::Order::kPath, {}, Layout::kMembers);
  ASSERT_TRUE(builder.AddShard({.path = "s.tar", .size = kShard.size(), .validator = {}}).ok());
  const std::vector<Member> full = {{.name = {}, .offset = 4, .size = 6}};
  const std::vector<Member> empty = {{.name = {}, .offset = 14, .size = 0}};
  ASSERT_TRUE(builder.Add({.path = "a", .validator = {}, .digest = {}, .members = full}).ok());
  ASSERT_TRUE(builder.Add({.path = "b", .validator = {}, .digest = {}, .members = empty}).ok());
  const Manifest manifest = std::move(builder).Finish().value();
  FakeObjectStore store;
  store.Put("s.tar", kShard);
  store.set_completes_at_once(true);
  EXPECT_EQ(ReadAll(store, manifest, 0), "jjjjjj");
  EXPECT_EQ(ReadAll(store, manifest, 1), "");
  EXPECT_EQ(store.reads(), 1);
}

}  // namespace
}  // namespace optcache::storage
