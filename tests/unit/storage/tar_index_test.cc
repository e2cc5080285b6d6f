#include "storage/tar_index.h"

#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_object_store.h"
#include "support/tar_bytes.h"

namespace optcache::storage {
namespace {

using dataset::TarEnd;
using dataset::TarEntry;
using dataset::TarFile;
using testing::HasSubstr;

class TarIndexTest : public testing::Test {
 protected:
  ListedObject Put(const std::string& path, const std::string& content) {
    store_.set_completes_at_once(true);
    store_.Put(path, content, {1, ""});
    return {path, ObjectInfo{.size = content.size(), .validator = {1, ""}}};
  }
  static Deadline Never() { return Deadline(MonotonicTime::max()); }

  FakeObjectStore store_;
};

TEST_F(TarIndexTest, ReadsManySmallFilesByFewRequests) {
  std::string archive;
  for (int i = 0; i < 1000; ++i)
    archive += TarEntry(std::to_string(i) + ".txt", std::string(700, 'x'));
  const auto files = IndexTar(store_, Put("a.tar", archive + TarEnd()), Never())->files;
  ASSERT_EQ(files.size(), 1000);
  EXPECT_EQ(files[999], (TarFile{.name = "999.txt", .offset = 999 * 1536 + 512, .size = 700}));
  EXPECT_LE(store_.reads(), 3) << "16 KiB, and the rest of 1.5 MB a MiB at a time";
}

TEST_F(TarIndexTest, LeavesOutLargeFiles) {
  std::string archive;
  for (int i = 0; i < 4; ++i)
    archive += TarEntry(std::to_string(i) + ".bin", std::string(3'000'000, 'x'));
  const auto files = IndexTar(store_, Put("a.tar", archive + TarEnd()), Never())->files;
  EXPECT_EQ(files.size(), 4);
  EXPECT_EQ(store_.reads(), 5) << "one a header, and one for the end";
}

// What `wds2idx` makes of an archive of three files of 3 MB each.
constexpr const char* kIdx =
    "v1.2 2\njpg 512 3000000 0.jpg png 3001344 3000000 0.png\njpg 6002176 3000000 1.jpg\n";

std::string ThreeLargeFiles() {
  std::string archive;
  for (const char* name : {"0.jpg", "0.png", "1.jpg"})
    archive += TarEntry(name, std::string(3'000'000, 'x'));
  return archive;
}

TEST_F(TarIndexTest, TheIndexFileBesideItSparesHeaders) {
  const ListedObject archive = Put("a.tar", ThreeLargeFiles() + TarEnd());
  const ListedObject idx = Put("a.idx", kIdx);
  const auto contents =
      IndexTars(store_, {archive}, {.idx_files = {{"a.idx", idx}}, .deadline = Never()}).value();
  EXPECT_EQ(store_.reads(), 3) << "the index, the last header, the end";
  EXPECT_THAT(contents.unfit_idx_files, testing::IsEmpty());
  EXPECT_EQ(contents.files.at(0), IndexTar(store_, archive, Never())->files);
}

TEST_F(TarIndexTest, AnIndexFileThatDoesNotFitIsNotUsed) {
  const ListedObject idx = Put("a.idx", kIdx);
  const std::string longer = ThreeLargeFiles() + TarEntry("2.jpg", "x") + TarEnd();
  const std::string other = ThreeLargeFiles().replace(6002176 - 512, 512, std::string(512, 'x'));
  const std::string shorter = TarEntry("0.jpg", "x") + TarEnd();
  for (const auto& [bytes, files, why] :
       {std::tuple(longer, 4, "a.idx: the archive ends otherwise: make it again"),
        std::tuple(shorter, 1, "a.idx: line 2: 0.jpg goes beyond this archive")}) {
    const ListedObject archive = Put("a.tar", bytes);
    const auto contents =
        IndexTars(store_, {archive}, {.idx_files = {{"a.idx", idx}}, .deadline = Never()}).value();
    EXPECT_EQ(contents.files.at(0).size(), files);
    EXPECT_THAT(contents.unfit_idx_files, testing::ElementsAre(HasSubstr(why)));
  }
  const auto files = ReadTarIdx(store_, idx, Put("a.tar", other + TarEnd()), Never());
  EXPECT_EQ(files.error().code(), Code::kInvalidArgument) << "no header where the last one was";
}

// It may have been cut between two members: nothing else tells.
TEST_F(TarIndexTest, ArchivesWithoutAnEndAreNamed) {
  const std::string two = TarEntry("0.jpg", "x") + TarEntry("1.jpg", "y");
  const std::vector<ListedObject> archives = {
      Put("cut.tar", TarEntry("0.jpg", "x")), Put("whole.tar", two + TarEnd()),
      Put("one-block.tar", two + std::string(512, '\0')),
      Put("in-padding.tar", two.substr(0, two.size() - 100)),
      Put("indexed.tar", ThreeLargeFiles())};
  const ListedObject idx = Put("indexed.idx", kIdx);
  const auto contents =
      IndexTars(store_, archives, {.idx_files = {{"indexed.idx", idx}}, .deadline = Never()})
          .value();
  EXPECT_EQ(contents.files.at(3).size(), 2U);
  EXPECT_THAT(contents.unfit_idx_files, testing::IsEmpty());
  EXPECT_THAT(contents.unended, testing::ElementsAre("cut.tar (1 file)", "in-padding.tar (2 files)",
                                                     "indexed.tar (3 files)"));
}

TEST_F(TarIndexTest, ErrorsNameStoreAndArchive) {
  const Status status = IndexTar(store_, Put("d/a.tar", std::string(2048, 'x')), Never()).error();
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("fake://: d/a.tar: "));
  ListedObject changed = Put("b.tar", TarEntry("a", "x"));
  changed.info->size += 512;
  EXPECT_EQ(IndexTar(store_, changed, Never()).error().code(), Code::kConflict);
}

TEST_F(TarIndexTest, LooksIntoManyAndKeepsTheirOrder) {
  std::vector<ListedObject> archives;
  for (int i = 0; i < 20; ++i) {
    const std::string name = std::to_string(i);
    archives.push_back(Put(name + ".tar", TarEntry(name, name) + TarEnd()));
  }
  std::atomic<std::uint64_t> last = 0;
  const auto all = IndexTars(store_, archives,
                             {.concurrent_max = 3,
                              .deadline = Never(),
                              .progress = [&](std::uint64_t, std::uint64_t n) { last = n; }})
                       .value()
                       .files;
  ASSERT_EQ(all.size(), 20);
  for (size_t i = 0; i < 20; ++i)
    EXPECT_EQ(all[i].at(0).name, std::to_string(i));
  EXPECT_EQ(last, 20);
}

TEST_F(TarIndexTest, TheFirstErrorEndsIt) {
  const std::vector<ListedObject> archives = {Put("a.tar", TarEntry("a", "x")),
                                              Put("b.tar", "short")};
  EXPECT_EQ(IndexTars(store_, archives, {.deadline = Never(), .progress = {}}).error().code(),
            Code::kDataLoss);
}

}  // namespace
}  // namespace optcache::storage
