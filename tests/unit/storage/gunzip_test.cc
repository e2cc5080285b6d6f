#include "storage/internal/gunzip.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/gzip.h"

namespace optcache::storage::internal {
namespace {

using testing::HasSubstr;

Result<std::string> Unpack(std::string_view packed, size_t piece) {
  Gunzip gunzip;
  std::string text;
  while (!packed.empty()) {
    RETURN_IF_ERROR(gunzip.Add(AsBytes(packed.substr(0, piece)), [&](std::string_view part) {
      text += part;
      return OkStatus();
    }));
    packed.remove_prefix(std::min(piece, packed.size()));
  }
  RETURN_IF_ERROR(gunzip.Finish());
  return text;
}

TEST(Gunzip, UnpacksWhereverItIsCut) {
  // By Python's gzip.
  const std::string packed(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcb\x48\xcd\xc9\xc9"
      "\x57\xc8\xc0\x4e\x72\x01\x00\x68\x02\x31\x66\x1e\x00\x00\x00",
      30);
  for (const size_t piece : {1U, 7U, 30U})
    EXPECT_EQ(Unpack(packed, piece), "hello hello hello hello hello\n") << piece;
}

TEST(Gunzip, UnpacksMembersOneAfterTheOther) {
  const std::string packed = StoredGzip("first ") + StoredGzip("") + StoredGzip("second");
  for (const size_t piece : {1U, 1000U})
    EXPECT_EQ(Unpack(packed, piece), "first second") << piece;
}

TEST(Gunzip, HandsOnPiecesOfLongTexts) {
  const std::string text(65'535, 'x');
  EXPECT_EQ(Unpack(StoredGzip(text) + StoredGzip(text), 1 << 20), text + text);
}

TEST(Gunzip, SaysWhatIsWrong) {
  const std::string good = StoredGzip("text");
  const auto error_of = [](const std::string& packed) {
    const auto text = Unpack(packed, 1000);
    EXPECT_EQ(text.error().code(), Code::kDataLoss);
    return text.error().message();
  };
  EXPECT_THAT(error_of(""), HasSubstr("it ends early"));
  EXPECT_THAT(error_of(good.substr(0, good.size() - 1)), HasSubstr("it ends early"));
  EXPECT_THAT(error_of("Key,Size\n"), HasSubstr("it is no gzip, or is damaged"));
  EXPECT_THAT(error_of(good + "x, and more"), HasSubstr("it is no gzip, or is damaged"));
  std::string damaged = good;
  damaged[16] ^= 1;
  EXPECT_THAT(error_of(damaged), HasSubstr("it is no gzip, or is damaged"));
}

TEST(Gunzip, EndsWhereWhatIsUnpackedIsNotWanted) {
  Gunzip gunzip;
  const std::string packed = StoredGzip("text");
  const Status status =
      gunzip.Add(AsBytes(packed), [](std::string_view) { return Status(Code::kCancelled, "no"); });
  EXPECT_EQ(status.code(), Code::kCancelled);
}

}  // namespace
}  // namespace optcache::storage::internal
