#include "dataset/manifest.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "base/random.h"
#include "dataset/manifest_builder.h"
#include "support/sealed_manifest.h"
#include "support/seeds.h"

namespace optcache::dataset {
namespace {

using testing::HasSubstr;

Manifest Small() {
  ManifestBuilder builder(Order::kImageFolder, {"cat", "dog"});
  for (std::uint32_t i = 0; i < 40; ++i) {
    const ClassIndex c = i / 20;
    EXPECT_TRUE(builder
                    .Add({.path = fmt::format("{}/{}.jpg", c == 0 ? "cat" : "dog", i % 20),
                          .size = 100 + i,
                          .class_index = c,
                          .validator = {.modified_ns = 1'700'000'000'000'000'000 + i,
                                        .etag = fmt::format("\"{}\"", i)},
                          .digest = Sha256Of(AsBytes(std::to_string(i)))})
                    .ok());
  }
  return std::move(builder).Finish().value();
}

// Puts right the header's checksum, so that what lies behind it is tested.
std::string Sealed(std::string bytes) {
  const std::uint32_t sections = static_cast<unsigned char>(bytes[28]);
  const std::uint32_t crc =
      Crc32c(AsBytes(bytes).subspan(64, sections * 24), Crc32c(AsBytes(bytes).first(60)));
  for (size_t i = 0; i < 4; ++i)
    bytes[60 + i] = static_cast<char>(crc >> (8 * i));
  return bytes;
}

TEST(Manifest, GivesBackWhatTheBuilderTook) {
  const Manifest built = Small();
  const Manifest m = Manifest::Parse(built.shared_bytes()).value();
  EXPECT_EQ(m.samples(), 40U);
  EXPECT_EQ(m.order(), Order::kImageFolder);
  EXPECT_EQ(m.classes(), 2U);
  EXPECT_EQ(m.ClassName(1), "dog");
  EXPECT_EQ(m.total_bytes(), 40U * 100U + 39U * 20U);
  EXPECT_EQ(m.Path(37), "dog/17.jpg");
  EXPECT_EQ(m.Size(37), 137U);
  EXPECT_EQ(m.ClassOf(19), 0U);
  EXPECT_EQ(m.ClassOf(20), 1U);
  EXPECT_EQ(m.ValidatorOf(37),
            (Validator{.modified_ns = 1'700'000'000'000'000'037, .etag = "\"37\""}));
  EXPECT_TRUE(m.has_digests());
  EXPECT_EQ(m.SampleDigest(37), Sha256Of(AsBytes("37")));
  EXPECT_EQ(m.NameInSource(37), "dog/17.jpg");
}

TEST(Manifest, LeavesOutWhatIsNotKnown) {
  ManifestBuilder builder(Order::kPath, {});
  ASSERT_TRUE(builder.Add({.path = "only", .size = 0}).ok());
  const Manifest m = std::move(builder).Finish().value();
  EXPECT_EQ(m.classes(), 0U);
  EXPECT_EQ(m.ClassOf(0), kNoClass);
  EXPECT_FALSE(m.ValidatorOf(0).known());
  EXPECT_FALSE(m.has_digests());
  EXPECT_EQ(m.SampleDigest(0), std::nullopt);
  EXPECT_EQ(m.bytes().size(), 64U + 2 * 24 + 32 /* paths with padding */ + 8);
}

TEST(Manifest, IsNamedByTheSha256OfItsBytes) {
  const Manifest m = Small();
  EXPECT_EQ(m.digest(), Sha256Of(AsBytes(m.bytes())));
  EXPECT_EQ(m.digest(), Small().digest());
}

TEST(Manifest, FindsEveryCut) {
  const std::string bytes(Small().bytes());
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto parsed = Manifest::Parse(bytes.substr(0, length));
    ASSERT_FALSE(parsed.has_value()) << length;
    EXPECT_EQ(parsed.error().code(), Code::kDataLoss) << parsed.error().ToString();
  }
}

TEST(Manifest, FindsEveryFlippedBit) {
  const std::string bytes(Small().bytes());
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ (1U << bit));
      ASSERT_FALSE(Manifest::Parse(std::move(damaged)).has_value()) << at << " bit " << bit;
    }
  }
}

// Whoever writes a manifest can also make its checksums match.
TEST(Manifest, SurvivesHeadersThatLieUnderAGoodChecksum) {
  constexpr size_t kLastKind = 64 + 6 * 24;
  const std::string bytes(Small().bytes());
  for (size_t at = 8; at < 64 + 7 * 24; ++at) {
    if (at >= 60 && at < 64) continue;
    for (const unsigned value : {0U, 1U, 2U, 0x7fU, 0x80U, 0xffU}) {
      std::string lying = bytes;
      lying[at] = static_cast<char>(value);
      if (lying == bytes || (at == 28 && value > 32)) continue;
      if (at == 28 && 64 + value * 24 > bytes.size()) continue;
      const auto parsed = Manifest::Parse(Sealed(lying));
      // A minor version, the order, reserved bytes and the kind of the last section (then one of
      // a later minor version) may differ; nothing else may.
      const bool harmless = at == 10 || at == 11 || (at == 12 && value >= 1 && value <= 3) ||
                            (at >= 52 && at < 60) || (at == kLastKind && value > 7) ||
                            (at > kLastKind && at < kLastKind + 4);
      EXPECT_EQ(parsed.has_value(), harmless) << "byte " << at << " = " << value;
    }
  }
}

// They go into the headers of requests.
TEST(Manifest, RefusesAnETagWithALineBreak) {
  std::string bytes(Small().bytes());
  const size_t at = bytes.find("\"32\"");
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at + 1, 2, "\r\n");
  const Status status = Manifest::Parse(SealedManifest(std::move(bytes))).error();
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("ETag is none"));
}

TEST(Manifest, RefusesAnotherMajorVersionWithASentence) {
  std::string bytes(Small().bytes());
  bytes[8] = 3;
  const Status status = Manifest::Parse(Sealed(bytes)).error();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("version 3"));
}

TEST(Manifest, SaysWhatIsNoManifest) {
  EXPECT_THAT(Manifest::Parse(std::string("hello")).error().message(), HasSubstr("not a manifest"));
  EXPECT_THAT(Manifest::Parse(std::string(100, 'x')).error().message(),
              HasSubstr("not a manifest"));
}

std::string Md5Like(Random& random) {
  return fmt::format("\"{:016x}{:016x}\"", random.Next(), random.Next());
}

// Samples as ImageNet names them: the bound on memory, which is the file's size.
TEST(Manifest, StaysWithin64BytesASample) {
  const std::uint32_t samples = LongTests() ? 10'000'000 : 1'000'000;
  constexpr std::uint32_t kClasses = 1000;
  Random random(1);
  std::vector<std::string> classes;
  for (std::uint32_t c = 0; c < kClasses; ++c) {
    classes.push_back(fmt::format("n{:08}", 1440764 + c * 13579));
  }
  ManifestBuilder files(Order::kImageFolder, classes);
  ManifestBuilder objects(Order::kImageFolder, classes);
  for (std::uint32_t i = 0; i < samples; ++i) {
    const ClassIndex c = i / (samples / kClasses);
    ManifestBuilder::Sample sample = {
        .path = {},
        .size = random.Below(200'000),
        .class_index = c,
        .validator = {.modified_ns = static_cast<std::int64_t>(random.Next() >> 2U), .etag = {}}};
    const std::string path = fmt::format("train/{0}/{0}_{1}.JPEG", classes[c],
                                         10'000 + (i % 10'000) * 13 + random.Below(13));
    sample.path = path;
    ASSERT_TRUE(files.Add(sample).ok());
    sample.validator = {.modified_ns = 0, .etag = Md5Like(random)};
    ASSERT_TRUE(objects.Add(sample).ok());
  }
  const Manifest by_time = std::move(files).Finish().value();
  const Manifest by_etag = std::move(objects).Finish().value();
  const double time_bytes = static_cast<double>(by_time.bytes().size()) / samples;
  const double etag_bytes = static_cast<double>(by_etag.bytes().size()) / samples;
  fmt::print("bytes a sample: {:.1f} with times, {:.1f} with ETags\n", time_bytes, etag_bytes);
  EXPECT_LT(time_bytes, 40);
  EXPECT_LT(etag_bytes, 64);
}

}  // namespace
}  // namespace optcache::dataset
