// Manifests whose samples are parts of archives: dataset/internal/shard_sections.h through the
// builder and the parser.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "dataset/manifest.h"
#include "dataset/manifest_builder.h"
#include "support/sealed_manifest.h"

namespace optcache::dataset {
namespace {

using testing::HasSubstr;

const std::vector<Member> kFirst = {{.name = "jpg", .offset = 512, .size = 100},
                                    {.name = "cls", .offset = 1536, .size = 1}};
const std::vector<Member> kSecond = {{.name = "jpg", .offset = 2560, .size = 30}};

Manifest Groups() {
  ManifestBuilder builder(Order::kPath, {}, Layout::kGroups);
  EXPECT_TRUE(builder.AddShard({.path = "a.tar", .size = 10240, .validator = {7, "\"x\""}}).ok());
  EXPECT_TRUE(builder.AddShard({.path = "b.tar", .size = 5120, .validator = {8, "\"y\""}}).ok());
  EXPECT_TRUE(builder.Add({.path = "./1", .validator = {}, .digest = {}, .members = kFirst}).ok());
  EXPECT_TRUE(
      builder.Add({.path = "./1", .validator = {}, .digest = {}, .shard = 1, .members = kSecond})
          .ok());
  return std::move(builder).Finish().value();
}

Manifest Members() {
  ManifestBuilder builder(Order::kImageFolder, {"cat", "dog"}, Layout::kMembers);
  EXPECT_TRUE(builder.AddShard({.path = "a.tar", .size = 10240, .validator = {}}).ok());
  for (std::uint32_t i = 0; i < 2; ++i) {
    const std::vector<Member> member = {{.name = {}, .offset = 512 + i * 1024U, .size = i}};
    EXPECT_TRUE(builder
                    .Add({.path = i == 0 ? "cat/1.jpg" : "dog/2.jpg",
                          .class_index = i,
                          .validator = {},
                          .digest = {},
                          .members = member})
                    .ok());
  }
  return std::move(builder).Finish().value();
}

TEST(ShardManifest, GivesBackGroups) {
  const Manifest m = Manifest::Parse(Groups().shared_bytes()).value();
  EXPECT_EQ(m.layout(), Layout::kGroups);
  EXPECT_EQ(m.samples(), 2);
  EXPECT_EQ(m.Path(0), "./1");
  EXPECT_EQ(m.MembersOf(0), kFirst);
  EXPECT_EQ(m.MembersOf(1), kSecond);
  EXPECT_EQ(m.Size(0), MembersSize("./1", kFirst).value());
  EXPECT_EQ(m.total_bytes(), m.Size(0) + m.Size(1));
  EXPECT_EQ(m.objects(), 2);
  EXPECT_EQ(m.ObjectOf(1), 1);
  EXPECT_EQ(m.ObjectAt(1).path, "b.tar");
  EXPECT_EQ(m.ObjectAt(1).size, 5120);
  EXPECT_EQ(m.ValidatorOf(1), (Validator{8, "\"y\""}));
}

TEST(ShardManifest, GivesBackMembers) {
  const Manifest m = Manifest::Parse(Members().shared_bytes()).value();
  EXPECT_EQ(m.layout(), Layout::kMembers);
  EXPECT_EQ(m.Path(1), "dog/2.jpg");
  EXPECT_EQ(m.ClassOf(1), 1);
  EXPECT_EQ(m.Size(0), 0);
  EXPECT_EQ(m.Size(1), 1);
  EXPECT_EQ(m.MembersOf(1), (std::vector<Member>{{.name = {}, .offset = 1536, .size = 1}}));
  EXPECT_EQ(m.ObjectAt(m.ObjectOf(1)).path, "a.tar");
}

TEST(ShardManifest, SaysItsMajorVersion) {
  EXPECT_EQ(Groups().bytes()[8], 2);
  ManifestBuilder builder(Order::kPath, {});
  ASSERT_TRUE(builder.Add({.path = "a", .size = 3, .validator = {9, ""}, .digest = {}}).ok());
  const Manifest objects = std::move(builder).Finish().value();
  EXPECT_EQ(objects.bytes()[8], 1);
  EXPECT_EQ(objects.layout(), Layout::kObjects);
  EXPECT_EQ(objects.objects(), 1);
  EXPECT_EQ(objects.ObjectAt(0).path, "a");
  EXPECT_EQ(objects.MembersOf(0), (std::vector<Member>{{.name = {}, .offset = 0, .size = 3}}));
}

TEST(ShardManifest, BuilderRefusesWhatCannotBe) {
  const auto finish = [](const std::vector<Member>& members, std::uint32_t shard) -> Status {
    ManifestBuilder builder(Order::kPath, {}, Layout::kGroups);
    EXPECT_TRUE(builder.AddShard({.path = "a.tar", .size = 1024, .validator = {}}).ok());
    RETURN_IF_ERROR(builder.Add(
        {.path = "k", .validator = {}, .digest = {}, .shard = shard, .members = members}));
    const Result<Manifest> manifest = std::move(builder).Finish();
    return manifest ? OkStatus() : manifest.error();
  };
  EXPECT_TRUE(finish({{.name = "a", .offset = 512, .size = 512}}, 0).ok());
  EXPECT_EQ(finish({{.name = "a", .offset = 512, .size = 513}}, 0).code(), Code::kDataLoss);
  EXPECT_EQ(finish({{.name = "a", .offset = 512, .size = 5}}, 1).code(), Code::kDataLoss);
  EXPECT_EQ(finish({}, 0).code(), Code::kInvalidArgument);
  EXPECT_EQ(
      finish({{.name = "a", .offset = 512, .size = 9}, {.name = "b", .offset = 520, .size = 1}}, 0)
          .code(),
      Code::kDataLoss);
  ManifestBuilder builder(Order::kPath, {}, Layout::kGroups);
  EXPECT_EQ(builder.AddShard({.path = "../a.tar", .size = 1, .validator = {}}).code(),
            Code::kInvalidArgument);
  EXPECT_THAT(builder.AddShard({.path = "a.tar", .size = 1, .validator = {1, "\"\n\""}}).message(),
              HasSubstr("a.tar: its ETag is none"));
  EXPECT_EQ(builder.Add({.path = "", .validator = {}, .digest = {}, .members = kFirst}).code(),
            Code::kInvalidArgument);
}

// Any damage that the checksums do not hide is either refused or harmless.
TEST(ShardManifest, SurvivesDamageBehindItsChecksums) {
  for (const Manifest& whole : {Groups(), Members()}) {
    const std::string bytes(whole.bytes());
    size_t refused = 0;
    for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
      Random random(seed);
      std::string damaged = bytes;
      const size_t at = 64 + random.Below(bytes.size() - 64);
      damaged[at] = static_cast<char>(random.Next());
      const Result<Manifest> parsed = Manifest::Parse(SealedManifest(std::move(damaged)));
      if (!parsed) {
        ++refused;
        continue;
      }
      for (SampleId sample = 0; sample < parsed->samples(); ++sample) {
        const Object object = parsed->ObjectAt(parsed->ObjectOf(sample));
        ByteCount end = 0;
        for (const Member& member : parsed->MembersOf(sample)) {
          EXPECT_GE(member.offset, end);
          end = member.offset + member.size;
        }
        EXPECT_LE(end, object.size) << "seed " << seed;
      }
    }
    EXPECT_GT(refused, 2000);
  }
}

// They go into the headers of requests.
TEST(ShardManifest, RefusesAnETagWithALineBreak) {
  std::string bytes(Groups().bytes());
  const size_t at = bytes.find("\"x\"");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 1] = '\n';
  const Status status = Manifest::Parse(SealedManifest(std::move(bytes))).error();
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("ETags of shards: its ETag is none"));
}

TEST(ShardManifest, NamesWhatIsDamaged) {
  std::string bytes(Groups().bytes());
  bytes[48] = 0;
  EXPECT_EQ(Manifest::Parse(bytes).error().code(), Code::kDataLoss);
  bytes = Groups().bytes();
  bytes[8] = 3;
  const Status later = Manifest::Parse(bytes).error();
  EXPECT_EQ(later.code(), Code::kInvalidArgument);
  EXPECT_THAT(later.message(), HasSubstr("reads version 1 and 2"));
}

}  // namespace
}  // namespace optcache::dataset
