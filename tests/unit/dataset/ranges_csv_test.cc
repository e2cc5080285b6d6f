#include "dataset/ranges_csv.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string WhyNotCsv(std::string_view text) {
  const auto index = ParseRangesCsv(text);
  return index ? "" : index.error().message();
}

TEST(RangesCsv, ReadsASampleALine) {
  const auto index = ParseRangesCsv("a.bin,0,100\nb/c.bin,50,7\r\na.bin,100,0");
  ASSERT_TRUE(index) << index.error().message();
  EXPECT_THAT(index->objects, ElementsAre("a.bin", "b/c.bin"));
  EXPECT_THAT(index->runs,
              ElementsAre(RangeRun{.object = 0, .line = 1, .offset = 0, .length = 100},
                          RangeRun{.object = 1, .line = 2, .offset = 50, .length = 7},
                          RangeRun{.object = 0, .line = 3, .offset = 100, .length = 0}));
  EXPECT_THAT(index->names, IsEmpty());
  EXPECT_EQ(index->samples(), 3U);
}

TEST(RangesCsv, ReadsNames) {
  const auto index = ParseRangesCsv("a,0,1,x/first\na,1,1,second\n");
  ASSERT_TRUE(index) << index.error().message();
  EXPECT_THAT(index->names, ElementsAre("x/first", "second"));
  EXPECT_THAT(ParseRangesCsv("a,0,1,\na,1,1\n")->names, IsEmpty()) << "an empty name is none";
}

TEST(RangesCsv, ReadsWhatSpreadsheetsAndDataFramesWrite) {
  for (const char* head : {"object,offset,length\n", "object,offset,length,name\n",
                           "\xef\xbb\xbfobject,offset,length\r\n", "\xef\xbb\xbf", "\n"}) {
    const auto index = ParseRangesCsv(head + std::string("a,3,4\n\n"));
    ASSERT_TRUE(index) << index.error().message();
    EXPECT_THAT(index->objects, ElementsAre("a"));
    EXPECT_EQ(index->runs.at(0).offset, 3U);
  }
}

TEST(RangesCsv, QuotesHoldCommasAndQuotes) {
  const auto index = ParseRangesCsv("\"a,b \"\"c\"\".bin\",\"3\",4,\",\"\n");
  ASSERT_TRUE(index) << index.error().message();
  EXPECT_THAT(index->objects, ElementsAre("a,b \"c\".bin"));
  EXPECT_EQ(index->runs.at(0).offset, 3U);
  EXPECT_THAT(index->names, ElementsAre(","));
}

TEST(RangesCsv, SaysWhichLineIsWrong) {
  EXPECT_THAT(WhyNotCsv(""), HasSubstr("there is no range in it"));
  EXPECT_THAT(WhyNotCsv("object,offset,length\n"), HasSubstr("there is no range in it"));
  EXPECT_THAT(WhyNotCsv("a,0,1\na,0\n"), HasSubstr("line 2: not OBJECT,OFFSET,LENGTH"));
  EXPECT_THAT(WhyNotCsv("a\t0\t1\n"), HasSubstr("line 1: not OBJECT,OFFSET,LENGTH"));
  EXPECT_THAT(WhyNotCsv("a,0,1,n,5\n"), HasSubstr("line 1: more than four fields"));
  EXPECT_THAT(WhyNotCsv("a,0,1\nobject,offset,length\n"),
              HasSubstr("line 2: \"offset\" is no offset in bytes"));
  EXPECT_THAT(WhyNotCsv("a,-1,1\n"), HasSubstr("line 1: \"-1\" is no offset in bytes"));
  EXPECT_THAT(WhyNotCsv("a,0,1.5\n"), HasSubstr("line 1: \"1.5\" is no length in bytes"));
  EXPECT_THAT(WhyNotCsv("a,0, 1\n"), HasSubstr("line 1: \" 1\" is no length"));
  EXPECT_THAT(WhyNotCsv("a,4611686018427387905,1\n"), HasSubstr("is no offset"));
  EXPECT_THAT(WhyNotCsv("a,99999999999999999999,1\n"), HasSubstr("is no offset"));
  EXPECT_THAT(WhyNotCsv("\"a,0,1\n"), HasSubstr("line 1: a field in quotes does not end"));
  EXPECT_THAT(WhyNotCsv("\"a\"b,0,1\n"), HasSubstr("line 1: something follows the quote"));
  EXPECT_THAT(WhyNotCsv("a\"b,0,1\n"), HasSubstr("line 1: a quote within a field"));
}

TEST(RangesCsv, RefusesPathsThatNoManifestHolds) {
  EXPECT_THAT(WhyNotCsv(",0,1\n"), HasSubstr("line 1: object path \"\" is empty"));
  EXPECT_THAT(WhyNotCsv("a,0,1\n../b,0,1\n"), HasSubstr("line 2: object path \"../b\""));
  EXPECT_THAT(WhyNotCsv("/a,0,1\n"), HasSubstr("relative to the source"));
  EXPECT_THAT(WhyNotCsv("a,0,1,/n\n"), HasSubstr("line 1: the name: object path \"/n\""));
}

TEST(RangesCsv, BoundsAFieldAndWhatMessagesQuote) {
  const std::string longest(4096, 'x');
  EXPECT_EQ(WhyNotCsv(longest + ",0,1," + longest), "");
  for (const auto& [line, words] : std::vector<std::pair<std::string, std::string>>{
           {longest + "x,0,1", "line 1: field 1 has 4097 bytes; the limit is 4096"},
           {"a," + longest + "0,1", "line 1: field 2 has 4097 bytes"},
           {"a,0,1,\"" + longest + "y\"", "line 1: field 4 has 4097 bytes"}}) {
    EXPECT_THAT(WhyNotCsv(line), HasSubstr(words));
    EXPECT_LT(WhyNotCsv(line).size(), 100U);
  }
}

TEST(RangesCsv, NamesAreForAllOrNone) {
  EXPECT_THAT(WhyNotCsv("a,0,1,n\na,1,1\n"),
              HasSubstr("line 2: it has no name, and line 1 has one"));
  EXPECT_THAT(WhyNotCsv("a,0,1\na,1,1,n\n"),
              HasSubstr("line 2: it has a name, and line 1 has none"));
}

}  // namespace
}  // namespace optcache::dataset
