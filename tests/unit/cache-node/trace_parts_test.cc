#include "cache-node/control/trace_parts.h"

#include <gtest/gtest.h>

#include "coordination/plan_base.h"
#include "sampler/id_list.h"

namespace optcache::node {
namespace {

wire::StreamTrace Part(const std::string& packed, std::size_t from, std::size_t size,
                       std::uint64_t length) {
  const ByteSpan bytes = AsBytes(packed).subspan(from, size);
  return {.bits = 10, .length = length, .offset = from, .packed = {bytes.begin(), bytes.end()}};
}

TEST(TraceParts, PartsMakeTheListOfTheirDigest) {
  const std::vector<SampleId> ids = {1, 1000, 3, 4, 1023};
  const std::string packed = sampler::PackIds(ids, 10);
  for (std::size_t cut = 0; cut <= packed.size(); ++cut) {
    TraceParts parts;
    ASSERT_TRUE(parts.Add(Part(packed, 0, cut, 5)).ok());
    EXPECT_EQ(parts.whole(), cut == packed.size());
    if (!parts.whole() && cut > 0) {
      ASSERT_TRUE(parts.Add(Part(packed, cut, packed.size() - cut, 5)).ok());
    }
    if (cut == 0) continue;
    ASSERT_TRUE(parts.whole());
    EXPECT_EQ(*parts.bytes(), sampler::EncodeList(ids, 10));
    EXPECT_EQ(parts.digest(), coordination::DigestHex(*parts.bytes()));
    EXPECT_EQ(parts.length(), 5U);
    EXPECT_EQ(parts.size(), parts.bytes()->size());
  }
}

TEST(TraceParts, OneFromTheFrontBeginsAnew) {
  const std::string packed = sampler::PackIds(std::vector<SampleId>{1, 2, 3, 4}, 10);
  TraceParts parts;
  ASSERT_TRUE(parts.Add(Part(packed, 0, 2, 4)).ok());
  ASSERT_TRUE(parts.Add(Part(packed, 0, 5, 4)).ok());
  EXPECT_TRUE(parts.whole());
}

TEST(TraceParts, RefusesPartsThatDoNotFit) {
  const std::string packed = sampler::PackIds(std::vector<SampleId>(40, 7), 10);
  const auto after_first = [&](const wire::StreamTrace& part) {
    TraceParts parts;
    EXPECT_TRUE(parts.Add(Part(packed, 0, 10, 40)).ok());
    return parts.Add(part).code();
  };
  EXPECT_EQ(after_first(Part(packed, 11, 5, 40)), Code::kInvalidArgument) << "a gap";
  EXPECT_EQ(after_first(Part(packed, 9, 5, 40)), Code::kInvalidArgument) << "twice";
  EXPECT_EQ(after_first(Part(packed, 10, 5, 41)), Code::kInvalidArgument) << "another length";
  wire::StreamTrace other = Part(packed, 10, 5, 40);
  other.bits = 11;
  EXPECT_EQ(after_first(other), Code::kInvalidArgument) << "other bits";
  other = Part(packed, 10, 40, 40);
  other.packed.push_back(std::byte{0});
  EXPECT_EQ(after_first(other), Code::kInvalidArgument) << "beyond its end";
  EXPECT_EQ(TraceParts().Add(Part(packed, 10, 5, 40)).code(), Code::kInvalidArgument)
      << "without its beginning";
}

TEST(TraceParts, RefusesListsThatCannotBe) {
  const auto begun = [](std::uint8_t bits, std::uint64_t length) {
    return TraceParts().Add({.bits = bits, .length = length}).code();
  };
  EXPECT_EQ(begun(10, 5), Code::kOk);
  EXPECT_EQ(begun(0, 5), Code::kInvalidArgument);
  EXPECT_EQ(begun(33, 5), Code::kInvalidArgument);
  EXPECT_EQ(begun(10, 0), Code::kInvalidArgument);
  EXPECT_EQ(begun(32, coordination::kMaxTraceBytes / 4), Code::kInvalidArgument);
  EXPECT_EQ(begun(32, ~std::uint64_t{0}), Code::kInvalidArgument);
}

}  // namespace
}  // namespace optcache::node
