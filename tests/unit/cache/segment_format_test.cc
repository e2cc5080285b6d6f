#include "cache/segment_format.h"

#include <gmock/gmock.h>

#include "base/crc32c.h"
#include "base/random.h"
#include "support/seeds.h"

namespace optcache::cache {
namespace {

constexpr SegmentName kFormatName{.dataset = 0x1122334455667788, .number = 7};

std::vector<SegmentRecord> SomeRecords(std::uint32_t count) {
  std::vector<SegmentRecord> records;
  for (std::uint32_t i = 0; i < count; ++i) {
    records.push_back(
        {.id = 100 + i,
         .length = 1000 * (i + 1),
         .crc = 0xabc0 + i,
         .kept_after = {.stream = 0xfeedfacecafebeef, .pass = 3, .position = 50 + i}});
  }
  return records;
}

std::string FileOf(const std::vector<SegmentRecord>& records) {
  std::string file = EncodeSegmentTable(kFormatName, records);
  file.resize(SegmentFileBytes(records), 'x');
  return file;
}

Result<Segment> Parse(const std::string& file, const std::vector<Extent>& holes = {}) {
  return ParseSegment(kFormatName, AsBytes(file), file.size(), holes);
}

// The document's first table, byte by byte.
TEST(SegmentFormat, IsAsSpecified) {
  const std::string table = EncodeSegmentTable(
      kFormatName, std::vector<SegmentRecord>{
                       {.id = 5,
                        .length = 6,
                        .crc = 0xa1b2c3d4,
                        .kept_after = {.stream = 0x0102030405060708, .pass = 9, .position = 10}}});
  ASSERT_EQ(table.size(), 4096U);
  EXPECT_EQ(table.substr(0, 8), "OCSEGM01");
  EXPECT_EQ(table.substr(8, 8), "\x88\x77\x66\x55\x44\x33\x22\x11");
  EXPECT_EQ(table.substr(16, 8), std::string_view("\7\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(table.substr(24, 4), std::string_view("\1\0\0\0", 4));
  const std::string_view record(
      "\5\0\0\0\6\0\0\0\xd4\xc3\xb2\xa1\11\0\0\0\10\7\6\5\4\3\2\1\12\0\0"
      "\0\0\0\0\0\0\0\0\0",
      36);
  EXPECT_EQ(table.substr(32, 36), record);
  const std::string bound = table.substr(8, 16) + std::string(4, '\0') + std::string(record);
  const std::uint32_t crc = Crc32c(AsBytes(bound));
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(static_cast<std::uint8_t>(table[68 + i]), (crc >> (8 * i)) & 0xffU);
  EXPECT_EQ(table.find_first_not_of('\0', 72), std::string::npos);
}

TEST(SegmentFormat, ReadsWhatWasWritten) {
  const auto records = SomeRecords(300);  // a table of several blocks
  const auto segment = Parse(FileOf(records));
  ASSERT_TRUE(segment) << segment.error().ToString();
  EXPECT_EQ(segment->records, records);
  EXPECT_FALSE(segment->torn);
  EXPECT_EQ(segment->extents.front().begin, SegmentDataBegin(300));
  EXPECT_EQ(segment->extents.front().size(), 1000U);
  EXPECT_EQ(segment->extents[1].begin, segment->extents[0].end);
  EXPECT_THAT(segment->present, testing::Each(true));
}

// What lies whole before the tear is found, at every length of the file.
TEST(SegmentFormat, FindsWhatLiesBeforeATear) {
  const auto records = SomeRecords(4);
  const std::string file = FileOf(records);
  const std::vector<Extent> extents = SegmentExtents(records, 4);
  for (std::size_t length = 0; length <= file.size(); ++length) {
    const auto segment = Parse(file.substr(0, length));
    if (length < kSegmentHeaderBytes) {
      ASSERT_FALSE(segment);
      ASSERT_EQ(segment.error().code(), Code::kDataLoss);
      continue;
    }
    ASSERT_TRUE(segment) << length;
    std::size_t whole = 0;
    while (whole < 4 && extents[whole].end <= length)
      ++whole;
    ASSERT_EQ(segment->records.size(), whole) << length;
    ASSERT_EQ(segment->torn, whole < 4) << length;
  }
}

// A flipped bit in the table hides that record and those after it, never gives another.
TEST(SegmentFormat, BelievesNoFlippedBit) {
  const auto records = SomeRecords(5);
  std::string file = FileOf(records);
  const std::size_t end = kSegmentHeaderBytes + 5 * kSegmentRecordBytes;
  for (std::size_t bit = 0; bit < end * 8; ++bit) {
    char& byte = file[bit / 8];
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
    const auto segment = Parse(file);
    if (bit / 8 < kSegmentHeaderBytes) {
      ASSERT_FALSE(segment) << bit;
    } else {
      const std::size_t broken = (bit / 8 - kSegmentHeaderBytes) / kSegmentRecordBytes;
      ASSERT_TRUE(segment) << bit;
      ASSERT_EQ(segment->records.size(), broken) << bit;
      ASSERT_TRUE(std::equal(segment->records.begin(), segment->records.end(), records.begin()));
    }
    byte = static_cast<char>(byte ^ (1 << (bit % 8)));
  }
}

TEST(SegmentFormat, IsNotTakenForAnotherSegment) {
  const std::string file = FileOf(SomeRecords(2));
  for (const SegmentName other : {SegmentName{.dataset = kFormatName.dataset, .number = 8},
                                  SegmentName{.dataset = 1, .number = 7}}) {
    const auto segment = ParseSegment(other, AsBytes(file), file.size(), {});
    ASSERT_FALSE(segment);
    EXPECT_EQ(segment.error().code(), Code::kDataLoss);
  }
}

TEST(SegmentFormat, SaysThatItIsOfAnotherVersion) {
  std::string file = FileOf(SomeRecords(2));
  file[7] = '2';
  EXPECT_EQ(Parse(file).error().code(), Code::kInvalidArgument);
}

TEST(SegmentFormat, ARecordInAHoleIsAbsent) {
  const auto records = SomeRecords(6);
  const std::vector<Extent> extents = SegmentExtents(records, 6);
  const auto segment =
      Parse(FileOf(records), {{.begin = extents[1].end - 1, .end = extents[3].begin},
                              {.begin = extents[4].begin, .end = extents[4].end}});
  ASSERT_TRUE(segment);
  EXPECT_THAT(segment->present, testing::ElementsAre(true, false, false, true, false, true));
}

TEST(SegmentFormat, AnEmptySampleTakesNoRoom) {
  std::vector<SegmentRecord> records = SomeRecords(3);
  records[1].length = 0;
  const auto segment = Parse(FileOf(records));
  ASSERT_TRUE(segment);
  EXPECT_EQ(segment->records, records);
  EXPECT_EQ(segment->extents[1].size(), 0U);
}

TEST(SegmentFormat, NamesFilesAndFolders) {
  EXPECT_EQ(SegmentFileName(0xa1), "00000000000000a1.segment");
  EXPECT_EQ(ParseSegmentFileName("00000000000000a1.segment"), 0xa1U);
  EXPECT_EQ(ParseSegmentFolderName(SegmentFolderName(kFormatName.dataset)), kFormatName.dataset);
  for (const char* other : {"a1.segment", "00000000000000A1.segment", "00000000000000a1.segmen",
                            "00000000000000a1", "0x000000000000a1.segment", ""}) {
    EXPECT_FALSE(ParseSegmentFileName(other)) << other;
  }
}

TEST(SegmentFormat, SurvivesAnyBytes) {
  const std::uint64_t seed = TestSeed(77);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  const std::string whole = FileOf(SomeRecords(20));
  for (int round = 0; round < 2000; ++round) {
    std::string file = whole.substr(0, random.Below(whole.size() + 1));
    for (int i = 0; i < 3 && !file.empty(); ++i)
      file[random.Below(file.size())] = static_cast<char>(random.Below(256));
    const auto segment = Parse(file);
    if (!segment) continue;
    for (const Extent& extent : segment->extents)
      ASSERT_LE(extent.end, file.size());
  }
}

}  // namespace
}  // namespace optcache::cache
