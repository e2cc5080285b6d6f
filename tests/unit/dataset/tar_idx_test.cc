#include "dataset/tar_idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string WhyNot(std::string_view text, ByteCount archive_bytes = 1 << 20) {
  const auto files = ParseTarIdx(text, archive_bytes);
  return files ? "" : files.error().message();
}

TEST(TarIdx, ReadsTheMembersOfAllSamples) {
  const auto files = ParseTarIdx(
      "v1.2 2\n"
      "jpg 512 700 a/0.jpg cls 2048 1 a/0.cls\n"
      "jpg 3072 0 a/1.jpg\n",
      10240);
  ASSERT_TRUE(files) << files.error().message();
  EXPECT_THAT(*files, ElementsAre(TarFile{.name = "a/0.jpg", .offset = 512, .size = 700},
                                  TarFile{.name = "a/0.cls", .offset = 2048, .size = 1},
                                  TarFile{.name = "a/1.jpg", .offset = 3072, .size = 0}));
}

TEST(TarIdx, LiesBesideItsArchive) {
  EXPECT_EQ(TarIdxPath("p/a.tar"), "p/a.idx");
  EXPECT_EQ(TarIdxPath("p/a.tgz"), "");
}

TEST(TarIdx, SaysWhichLineIsWrong) {
  EXPECT_THAT(WhyNot(""), HasSubstr("line 1: not the head of an index of version v1.2"));
  EXPECT_THAT(WhyNot("v1.1 1\njpg 512 1\n"), HasSubstr("line 1: not the head"));
  EXPECT_THAT(WhyNot("v1.2 many\n"), HasSubstr("line 1: does not say how many"));
  EXPECT_THAT(WhyNot("v1.2 1\njpg 512 1\n"), HasSubstr("line 2: not ENDING OFFSET SIZE NAME"));
  EXPECT_THAT(WhyNot("v1.2 1\njpg 512 -1 0.jpg\n"), HasSubstr("line 2: not ENDING"));
  EXPECT_THAT(WhyNot("v1.2 1\njpg 512 1 a b.jpg\n"), HasSubstr("line 2: not ENDING"));
  EXPECT_THAT(WhyNot("v1.2 2\njpg 512 1 0.jpg\n"), HasSubstr("line 2: the last of 1 samples"));
}

TEST(TarIdx, RefusesWhatCannotLieInTheArchive) {
  EXPECT_THAT(WhyNot("v1.2 1\njpg 0 1 0.jpg\n"),
              HasSubstr("0.jpg lies at 0, where 512 would follow what is before"));
  EXPECT_THAT(WhyNot("v1.2 1\njpg 1024 1 0.jpg\n"), HasSubstr("0.jpg lies at 1024"));
  EXPECT_THAT(WhyNot("v1.2 1\njpg 512 9999 0.jpg\n", 4096), HasSubstr("of 4096 bytes"));
  EXPECT_THAT(WhyNot("v1.2 2\njpg 512 600 0.jpg\njpg 1536 1 1.jpg\n"),
              HasSubstr("line 3: 1.jpg lies at 1536, where 2048 would"));
}

}  // namespace
}  // namespace optcache::dataset
