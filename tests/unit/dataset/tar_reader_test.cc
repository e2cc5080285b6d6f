#include "dataset/tar_reader.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tar_bytes.h"

namespace optcache::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Reads a whole archive as a caller does, and says how many bytes were looked at.
struct Scan {
  std::vector<TarFile> files;
  Status status;
  ByteCount looked_at = 0;
  bool ended = false;
};

Scan ScanOf(const std::string& archive) {
  Scan scan;
  Result<TarReader> reader = TarReader::Open(archive.size());
  if (!reader) return {.files = {}, .status = reader.error()};
  while (!reader->done()) {
    scan.looked_at += reader->wanted();
    EXPECT_LE(reader->position() + reader->wanted(), archive.size());
    auto file = reader->Take(AsBytes(archive).subspan(reader->position(), reader->wanted()));
    if (!file) {
      scan.status = file.error();
      return scan;
    }
    if (*file) scan.files.push_back(**file);
  }
  scan.ended = reader->ended();
  return scan;
}

TarFile File(std::string name, ByteCount offset, ByteCount size) {
  return {.name = std::move(name), .offset = offset, .size = size};
}

TEST(TarReader, FindsFilesAndSkipsTheirData) {
  const Scan scan =
      ScanOf(TarEntry("a.jpg", std::string(1000, 'x')) + TarEntry("b/c.txt", "hello") + TarEnd());
  EXPECT_TRUE(scan.status.ok()) << scan.status.message();
  EXPECT_THAT(scan.files, ElementsAre(File("a.jpg", 512, 1000), File("b/c.txt", 2048, 5)));
  EXPECT_EQ(scan.looked_at, 3 * 512);
}

TEST(TarReader, EndsAtTheArchivesEndWithoutZeros) {
  const std::string entry = TarEntry("a", "0123456789");
  EXPECT_THAT(ScanOf(entry).files, ElementsAre(File("a", 512, 10)));
  const Scan unpadded = ScanOf(entry.substr(0, 522));
  EXPECT_TRUE(unpadded.status.ok());
  EXPECT_THAT(unpadded.files, ElementsAre(File("a", 512, 10)));
}

TEST(TarReader, TellsWhetherTheArchiveHasAnEnd) {
  const std::string entry = TarEntry("a", "0123456789");
  EXPECT_TRUE(ScanOf(entry + TarEnd()).ended);
  EXPECT_TRUE(ScanOf(entry + std::string(512, '\0')).ended);
  EXPECT_FALSE(ScanOf(entry).ended);
  EXPECT_FALSE(ScanOf(entry.substr(0, 522)).ended);
}

TEST(TarReader, StopsAtTheFirstBlockOfZeros) {
  EXPECT_THAT(ScanOf(TarEntry("a", "x") + std::string(512, '\0') + TarEntry("b", "y")).files,
              ElementsAre(File("a", 512, 1)));
  EXPECT_TRUE(ScanOf(TarEnd()).files.empty());
}

TEST(TarReader, LeavesOutWhatIsNoFile) {
  std::string archive = TarEntry("folder/", "", '5') + TarEntry("link", "", '2');
  // A hard link may tell the size of what it links to; it has no data all the same.
  archive += TarBlock({.name = "hard", .type = '1', .size_field = {}, .size = 700, .prefix = {}});
  archive += TarEntry("old-folder/", "", '\0') + TarEntry("unknown", "data", 'Q');
  archive += TarEntry("file", "x", '7') + TarEntry("old", "y", '\0');
  const Scan scan = ScanOf(archive + TarEnd());
  EXPECT_TRUE(scan.status.ok()) << scan.status.message();
  EXPECT_THAT(scan.files, ElementsAre(File("file", 7 * 512, 1), File("old", 9 * 512, 1)));
}

TEST(TarReader, ReadsPrefixesOfPosixAlone) {
  EXPECT_EQ(ScanOf(TarBlock({.name = "b", .size_field = {}, .prefix = "a/long"})).files.at(0).name,
            "a/long/b");
  EXPECT_EQ(ScanOf(TarBlock({.name = "b",
                             .size_field = {},
                             .prefix = "14671123456",
                             .magic = std::string("ustar  \0", 8)}))
                .files.at(0)
                .name,
            "b");
}

TEST(TarReader, ReadsLongNamesOfGnu) {
  const std::string name = std::string(300, 'n') + ".jpg";
  const std::string archive =
      TarEntry("././@LongLink", name + '\0', 'L') + TarEntry(name.substr(0, 100), "x") +
      TarEntry("././@LongLink", std::string(200, 't'), 'K') + TarEntry("short", "y") + TarEnd();
  const Scan scan = ScanOf(archive);
  EXPECT_TRUE(scan.status.ok()) << scan.status.message();
  EXPECT_THAT(scan.files, ElementsAre(File(name, 3 * 512, 1), File("short", 7 * 512, 1)));
}

TEST(TarReader, ReadsPaxHeaders) {
  const std::string name = "p\xc3\xa4th/" + std::string(500, 'n') + "/";
  const std::string records = TarPaxRecord("mtime", "1.5") + TarPaxRecord("path", name) +
                              TarPaxRecord("size", "3") + TarPaxRecord("comment", "a=b\nc");
  const std::string archive = TarEntry("g", TarPaxRecord("comment", "all"), 'g') +
                              TarEntry("x", records, 'x') +
                              TarBlock({.name = "cut", .size_field = "00000000000"}) +
                              TarPadded("abc") + TarEntry("b", "y");
  const Scan scan = ScanOf(archive);
  EXPECT_TRUE(scan.status.ok()) << scan.status.message();
  ASSERT_EQ(scan.files.size(), 2);
  EXPECT_EQ(scan.files[0].name, name.substr(0, name.size() - 1));
  EXPECT_EQ(scan.files[0].size, 3);
  EXPECT_EQ(scan.files[1].name, "b") << "an extended header is for one file";
}

TEST(TarReader, ReadsSizesInBase256) {
  std::string field(12, '\0');
  field[0] = '\x80';
  field[11] = '\x07';
  EXPECT_EQ(
      ScanOf(TarBlock({.name = "a", .size_field = field}) + TarPadded("1234567")).files.at(0).size,
      7);
}

TEST(TarReader, RefusesWhatIsNoArchive) {
  EXPECT_EQ(ScanOf("short").status.code(), Code::kDataLoss);
  EXPECT_THAT(ScanOf(std::string(2048, 'x')).status.message(), HasSubstr("this is no tar archive"));
  const Scan zipped = ScanOf("\x1f\x8b" + std::string(1000, 'x'));
  EXPECT_EQ(zipped.status.code(), Code::kInvalidArgument);
  EXPECT_THAT(zipped.status.message(), HasSubstr("compressed"));
}

TEST(TarReader, SaysWhereAnArchiveIsDamaged) {
  std::string archive = TarEntry("a", "x") + TarEntry("b", "y") + TarEnd();
  archive[1024 + 3] = 'z';
  const Scan scan = ScanOf(archive);
  EXPECT_EQ(scan.status.code(), Code::kDataLoss);
  EXPECT_THAT(scan.status.message(),
              HasSubstr("checksum of a header does not match, at byte 1024"));
}

TEST(TarReader, NoticesThatAnArchiveIsCutShort) {
  const std::string archive = TarEntry("a", std::string(2000, 'x')) + TarEntry("b", "y");
  EXPECT_EQ(ScanOf(archive.substr(0, 1500)).status.code(), Code::kDataLoss);
  EXPECT_THAT(ScanOf(archive.substr(0, 2560 + 100)).status.message(), HasSubstr("cut short"));
  EXPECT_EQ(ScanOf(TarEntry("n", "long name", 'L')).status.code(), Code::kOk);
  EXPECT_THAT(ScanOf(TarEntry("n", std::string(600, 'n'), 'L').substr(0, 1024)).status.message(),
              HasSubstr("cut short"));
}

TEST(TarReader, RefusesFilesThatDoNotLieInOnePiece) {
  const Scan old = ScanOf(TarEntry("s", "x", 'S'));
  EXPECT_EQ(old.status.code(), Code::kInvalidArgument);
  EXPECT_THAT(old.status.message(), HasSubstr("s is sparse"));
  const Scan pax =
      ScanOf(TarEntry("x", TarPaxRecord("GNU.sparse.major", "1"), 'x') + TarEntry("s", "x"));
  EXPECT_EQ(pax.status.code(), Code::kInvalidArgument);
}

TEST(TarReader, HasLimits) {
  const auto code = [](const std::string& archive) { return ScanOf(archive).status.code(); };
  EXPECT_EQ(code(TarEntry("n", std::string(kTarExtensionBytesMax + 1, 'n'), 'L')), Code::kDataLoss);
  EXPECT_EQ(code(TarBlock({.name = "n", .type = 'L', .size_field = {}})), Code::kDataLoss);
  EXPECT_EQ(code(TarEntry("n", std::string(kTarNameBytesMax + 1, 'n'), 'L') + TarEntry("a", "x")),
            Code::kDataLoss);
  EXPECT_EQ(code(TarBlock({.name = "", .size_field = {}})), Code::kDataLoss);
  EXPECT_EQ(code(TarEntry("x", "9 path=ab\n", 'x') + TarEntry("a", "x")), Code::kDataLoss);
  EXPECT_EQ(code(TarEntry("x", "99 path=ab\n", 'x') + TarEntry("a", "x")), Code::kDataLoss);
  EXPECT_EQ(code(TarEntry("x", TarPaxRecord("size", "-1"), 'x')), Code::kDataLoss);
  EXPECT_EQ(code(TarEntry("g", TarPaxRecord("path", "all"), 'g')), Code::kDataLoss);
  for (const char first : {'\xff', '\x81'}) {
    std::string field(12, '\0');
    field[0] = first;
    EXPECT_EQ(code(TarBlock({.name = "a", .size_field = field})), Code::kDataLoss);
  }
  EXPECT_EQ(TarReader::Open(~ByteCount{0}).error().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace optcache::dataset
