#include "storage/whole_sums.h"

#include <optional>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"

namespace optcache::storage {
namespace {

using testing::HasSubstr;

struct Vector {
  SumKind kind{};
  std::string_view name;
  std::string_view text;
  std::string_view sum;  // in base64
};

// The check values of the CRCs; for the hashes those of FIPS 180 for "abc", and for nothing.
constexpr Vector kVectors[] = {
    {SumKind::kCrc32, "CRC-32", "123456789", "y/Q5Jg=="},
    {SumKind::kCrc32c, "CRC-32C", "123456789", "4waSgw=="},
    {SumKind::kCrc64Nvme, "CRC-64/NVME", "123456789", "rosUhgp5mIg="},
    {SumKind::kSha1, "SHA-1", "abc", "qZk+NkcGgWq6PiVxeFDCbJzQ2J0="},
    {SumKind::kSha256, "SHA-256", "abc", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="},
    {SumKind::kCrc32, "CRC-32", "", "AAAAAA=="},
    {SumKind::kCrc64Nvme, "CRC-64/NVME", "", "AAAAAAAAAAA="},
    {SumKind::kSha1, "SHA-1", "", "2jmj7l5rSw0yVb/vlWAYkK/YBwk="},
    {SumKind::kSha256, "SHA-256", "", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="},
};

ToldSum Told(const Vector& vector) {
  return {.kind = vector.kind, .value = DecodeBase64(vector.sum).value()};
}

TEST(WholeSums, AreThePublishedOnes) {
  for (const Vector& vector : kVectors) {
    EXPECT_EQ(SumBytes(vector.kind), Told(vector).value.size());
    WholeSums sums({Told(vector)});
    sums.Add(AsBytes(vector.text));
    EXPECT_TRUE(sums.Compare().ok()) << vector.name << " of \"" << vector.text << "\"";
  }
}

TEST(WholeSums, AnotherSumIsNamedWithBothValues) {
  for (const Vector& vector : kVectors) {
    WholeSums sums({Told(vector)});
    sums.Add(AsBytes(vector.text));
    sums.Add(AsBytes("!"));
    const Status status = sums.Compare();
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr("the " + std::string(vector.name) + " of what came"));
    EXPECT_THAT(status.message(), HasSubstr(", the store says " + std::string(vector.sum)));
  }
  WholeSums sums({{.kind = SumKind::kCrc32c, .value = "\xff\xff\xff\xff"}});
  sums.Add(AsBytes("123456789"));
  EXPECT_EQ(sums.Compare().message(),
            "the CRC-32C of what came is 4waSgw==, the store says /////w==");
}

TEST(WholeSums, AreOfAllPieces) {
  for (const Vector& vector : kVectors) {
    WholeSums sums({Told(vector)});
    for (const char c : vector.text)
      sums.Add(AsBytes({&c, 1}));
    EXPECT_TRUE(sums.Compare().ok()) << vector.name;
  }
}

// As a hedged read of the rest does.
TEST(WholeSums, ACopyGoesOnByItself) {
  for (const Vector& vector : kVectors) {
    if (vector.text.empty()) continue;
    WholeSums first({Told(vector)});
    first.Add(AsBytes(vector.text.substr(0, 1)));
    std::optional<WholeSums> second = first;
    first.Add(AsBytes("?"));
    second->Add(AsBytes(vector.text.substr(1)));
    EXPECT_FALSE(first.Compare().ok()) << vector.name;
    EXPECT_TRUE(second->Compare().ok()) << vector.name;
    first = *second;
    EXPECT_TRUE(first.Compare().ok()) << vector.name;
  }
}

TEST(WholeSums, AllThatAreToldAreCompared) {
  const Vector& crc = kVectors[1];
  ToldSum wrong = {.kind = SumKind::kSha256, .value = std::string(32, 'x')};
  WholeSums sums({Told(crc), wrong});
  sums.Add(AsBytes(crc.text));
  EXPECT_THAT(sums.Compare().message(), HasSubstr("the SHA-256 of what came"));
}

}  // namespace
}  // namespace optcache::storage
