#include "cli/manifest/manifest_report.h"

#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataset/manifest_builder.h"

namespace optcache::cli {
namespace {

using dataset::Manifest;
using dataset::ManifestBuilder;
using dataset::Order;
using testing::ElementsAre;
using testing::IsEmpty;

Manifest WithSizes(std::initializer_list<ByteCount> sizes) {
  ManifestBuilder builder(Order::kPath, {});
  for (const ByteCount size : sizes) {
    EXPECT_TRUE(builder.Add({.path = fmt::format("o{}", size), .size = size}).ok());
  }
  return std::move(builder).Finish().value();
}

TEST(ManifestReport, QuantilesAreOfTheNearestRank) {
  const auto of_four = SizeQuantiles(WithSizes({40, 10, 30, 20}));
  const std::array<ByteCount, 5> expected = {10, 20, 40, 40, 40};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(of_four[i].size, expected[i]) << of_four[i].name;
  }
  for (const SizeQuantile& quantile : SizeQuantiles(WithSizes({7})))
    EXPECT_EQ(quantile.size, 7U);
}

TEST(ManifestReport, IsTextForPeople) {
  const Manifest manifest = WithSizes({1, 2});
  const std::string expected =
      "m\n"
      "  order    path\n"
      "  samples  2\n"
      "  bytes    3 (3 B)\n"
      "  sizes    min 1 B p50 1 B p90 2 B p99 2 B max 2 B\n"
      "  verify   Checksum\n"
      "  digest   ";
  EXPECT_EQ(ManifestAsText("m", manifest), expected + DigestText(manifest) + "\n");
}

TEST(ManifestReport, IsJsonForPrograms) {
  const Manifest manifest = WithSizes({1, 2});
  const std::string expected = fmt::format(
      R"({{
  "digest": "{}",
  "order": "path",
  "samples": 2,
  "classes": 0,
  "bytes": 3,
  "verify": "Checksum",
  "manifestBytes": {},
  "sizes": {{
    "min": 1,
    "p50": 1,
    "p90": 2,
    "p99": 2,
    "max": 2
  }}
}}
)",
      DigestText(manifest), manifest.bytes().size());
  EXPECT_EQ(ManifestAsJson(manifest), expected);
}

TEST(ManifestReport, NotesSayWhatWasDecidedLeftOutMissingOrUnversioned) {
  storage::IndexReport report = {.manifest = WithSizes({1, 2}),
                                 .objects = 5,
                                 .left_out = 3,
                                 .order_chosen = true,
                                 .missing_count = 2,
                                 .missing = {"o0"}};
  report.unreadable_count = 1;
  report.unreadable = {"o1"};
  report.unversioned_count = 1;
  EXPECT_THAT(
      BuildNotes(report),
      ElementsAre("No images in folders: numbered by path, without classes (--order path).",
                  "Left out: 3 objects that are no samples.",
                  "Warning: 2 samples are listed but not there (o0, ...): reading them will fail.",
                  "Warning: user " + std::to_string(::geteuid()) +
                      " may not read 1 sample (o1): reading it will fail.",
                  "Warning: of 1 sample the store tells neither ETag nor time: another object of "
                  "the same size in its place will not be noticed."));
  report = {.manifest = WithSizes({1, 2}), .objects = 2};
  report.unended = {"a.tar (1 file)", "b.tar (3 files)"};
  EXPECT_THAT(BuildNotes(report),
              ElementsAre("Warning: 2 archives have no end mark and may have been cut: what was "
                          "found was taken (a.tar (1 file), ...). Compare their lengths with what "
                          "was packed."));
  report = {.manifest = WithSizes({1, 2}), .objects = 2};
  EXPECT_THAT(BuildNotes(report), IsEmpty());
  ManifestBuilder with_digest(Order::kPath, {});
  ASSERT_TRUE(with_digest.Add({.path = "o", .digest = dataset::Sha256Of({})}).ok());
  report = {.manifest = std::move(with_digest).Finish().value(), .unversioned_count = 1};
  EXPECT_THAT(BuildNotes(report), IsEmpty()) << "the digest notices it";
}

TEST(ManifestReport, VerifyNamesObjects) {
  EXPECT_EQ(VerifyAsText({.checked = 1}), "unchanged: 1 sample checked\n");
  EXPECT_EQ(VerifyAsText({.checked = 9,
                          .missing_count = 3,
                          .changed_count = 1,
                          .missing = {"a", "b"},
                          .changed = {"c changed"}}),
            "missing: 3\n  a\n  b\n  and 1 more\nchanged: 1\n  c changed\n9 samples checked\n");
  EXPECT_EQ(VerifyAsText({.checked = 2, .compared = 8}),
            "unchanged: 2 samples checked, the contents of 8 compared\n");
  EXPECT_EQ(
      VerifyAsText({.checked = 2, .compared = 8, .damaged_count = 1, .damaged = {"0001 in a.tar"}}),
      "other contents: 1\n  0001 in a.tar\n2 samples checked, the contents of 8 compared\n");
}

}  // namespace
}  // namespace optcache::cli
