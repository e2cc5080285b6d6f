#include "dataset/megatron_idx.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/megatron_bytes.h"

namespace optcache::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string WhyNotIdx(std::string_view idx) {
  const auto index = ParseMegatronIdx(idx, "a.bin");
  return index ? "" : index.error().message();
}

TEST(MegatronIdx, SequencesAreSamples) {
  const std::string idx = MegatronIdx(
      {{.tokens = 5, .offset = 0}, {.tokens = 0, .offset = 10}, {.tokens = 7, .offset = 10}});
  for (const std::string modes : {"", "\x01\x02\x03"}) {
    const auto index = ParseMegatronIdx(idx + modes, "a.bin");
    ASSERT_TRUE(index) << index.error().message();
    EXPECT_THAT(index->objects, ElementsAre("a.bin"));
    EXPECT_THAT(index->runs, ElementsAre(RangeRun{.line = 0, .offset = 0, .length = 10},
                                         RangeRun{.line = 1, .offset = 10, .length = 0},
                                         RangeRun{.line = 2, .offset = 10, .length = 14}));
    EXPECT_THAT(index->names, IsEmpty());
    EXPECT_EQ(index->type, "uint16 tokens");
    EXPECT_EQ(index->unit, "sequence");
  }
}

TEST(MegatronIdx, KnowsTheTypes) {
  const std::vector<std::pair<int, ByteCount>> types = {{1, 1}, {2, 1}, {3, 2}, {4, 4},
                                                        {5, 8}, {6, 8}, {8, 2}};
  for (const auto& [code, bytes] : types) {
    const auto index = ParseMegatronIdx(MegatronIdx({{.tokens = 3, .offset = 0}}, code), "a.bin");
    ASSERT_TRUE(index) << index.error().message();
    EXPECT_EQ(index->runs.at(0).length, 3 * bytes) << code;
  }
  EXPECT_THAT(WhyNotIdx(MegatronIdx({}, 7)), HasSubstr("float32 to Megatron-LM and float64"));
  for (const int code : {0, 9, 255})
    EXPECT_THAT(WhyNotIdx(MegatronIdx({}, code)), HasSubstr("which is not known"));
}

TEST(MegatronIdx, MayBeEmpty) {
  const auto index = ParseMegatronIdx(MegatronIdx({}), "a.bin");
  ASSERT_TRUE(index) << index.error().message();
  EXPECT_THAT(index->runs, IsEmpty());
  EXPECT_THAT(index->objects, IsEmpty());
}

TEST(MegatronIdx, LiesBesideItsBin) {
  EXPECT_EQ(MegatronBinPath("p/a.idx"), "p/a.bin");
  EXPECT_EQ(MegatronBinPath("p/a.index"), "");
}

TEST(MegatronIdx, SaysWhyItIsNone) {
  const std::string idx = MegatronIdx({{.tokens = 5, .offset = 0}, {.tokens = 2, .offset = 10}});
  EXPECT_THAT(WhyNotIdx(""), HasSubstr("no index of Megatron-LM"));
  EXPECT_THAT(WhyNotIdx("v1.2 1\njpg 512 1 0.jpg, and more of a tar's index"),
              HasSubstr("no index of Megatron-LM"));
  EXPECT_THAT(WhyNotIdx(std::string(100, '\0')), HasSubstr("no index of Megatron-LM"));
  EXPECT_THAT(WhyNotIdx(MegatronIdx({}, 8, 2)), HasSubstr("of version 2, and only 1"));
  for (const size_t length : {idx.size() - 1, idx.size() - 8, size_t{34}})
    EXPECT_THAT(WhyNotIdx(idx.substr(0, length)), HasSubstr("upload the file again"));
  EXPECT_THAT(WhyNotIdx(idx + "x"), HasSubstr("do not fit its 2 sequences and 3 documents"));
  EXPECT_THAT(WhyNotIdx(MegatronIdx({{.tokens = -1, .offset = 0}})),
              HasSubstr("sequence 0 has -1 tokens"));
  EXPECT_THAT(WhyNotIdx(MegatronIdx({{.tokens = 1, .offset = -8}})), HasSubstr("from byte -8 on"));
  constexpr auto kFar = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(WhyNotIdx(MegatronIdx({{.tokens = 1, .offset = kFar}})), HasSubstr("upload"));
}

TEST(MegatronIdx, NumbersBeyondTheFileAreNotMultiplied) {
  for (const std::size_t at : {18U, 26U}) {  // sequences, documents
    for (const char top : {'\x20', '\x55', '\xff'}) {
      std::string idx = MegatronIdx({{.tokens = 1, .offset = 0}});
      idx[at + 7] = top;
      EXPECT_THAT(WhyNotIdx(idx), HasSubstr("do not fit"));
    }
  }
}

}  // namespace
}  // namespace optcache::dataset
