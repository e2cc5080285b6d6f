#include "dataset/npy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/npy_bytes.h"

namespace optcache::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Result<RangeIndex> Rows(std::string_view dict, ByteCount data_bytes, int major = 1) {
  const std::string header = NpyHeader(dict, major);
  return ParseNpy("a.npy", header, header.size() + data_bytes);
}

std::string WhyNotNpy(std::string_view dict, ByteCount data_bytes = 0) {
  const auto rows = Rows(dict, data_bytes);
  return rows ? "" : rows.error().message();
}

std::string Dict(std::string_view descr, std::string_view shape) {
  return fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': {}, }}", descr, shape);
}

TEST(Npy, RowsLieBehindTheHeader) {
  for (const int major : {1, 2, 3}) {
    const auto rows = Rows(Dict("'<f4'", "(10, 3, 2)"), 240, major);
    ASSERT_TRUE(rows) << rows.error().message();
    EXPECT_THAT(rows->objects, ElementsAre("a.npy"));
    const ByteCount header = NpyHeader(Dict("'<f4'", "(10, 3, 2)"), major).size();
    EXPECT_THAT(rows->runs, ElementsAre(RangeRun{.offset = header, .length = 24, .count = 10}));
    EXPECT_EQ(rows->type, "<f4 (3, 2)");
  }
}

TEST(Npy, KnowsTheSizeOfEveryType) {
  const std::vector<std::pair<std::string, ByteCount>> types = {
      {"'|u1'", 1},
      {"'|b1'", 1},
      {"'>i8'", 8},
      {"'<c16'", 16},
      {"'<f2'", 2},
      {"'|S10'", 10},
      {"'<U10'", 40},
      {"'|V3'", 3},
      {"'<M8[ns]'", 8},
      {"'<m8'", 8},
      {"[('a', '<i4'), ('b', '|u1')]", 5},
      {"[('a', '<i4', (2, 3)), ('', '|V4'), (('title', 'b'), '<f8', 2)]", 24 + 4 + 16},
      {"[('p', [('x', '<f4'), ('y', '<f4')], (5,))]", 40},
      {R"([("it's", '<i2'), ('a\'b', '<i2')])", 4}};
  for (const auto& [descr, bytes] : types) {
    const auto rows = Rows(Dict(descr, "(2,)"), 2 * bytes);
    ASSERT_TRUE(rows) << descr << ": " << rows.error().message();
    EXPECT_EQ(rows->runs.at(0).length, bytes) << descr;
  }
}

TEST(Npy, AnArrayMayHaveNoRows) {
  const auto rows = Rows(Dict("'<f4'", "(0, 3)"), 0);
  ASSERT_TRUE(rows) << rows.error().message();
  EXPECT_THAT(rows->runs, IsEmpty());
  EXPECT_THAT(rows->objects, IsEmpty());
}

TEST(Npy, FortranOrderOfOneAxisIsTheSame) {
  EXPECT_EQ(WhyNotNpy("{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}", 8), "");
  EXPECT_THAT(WhyNotNpy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", 16),
              HasSubstr("Fortran order: save numpy.ascontiguousarray(array)"));
}

TEST(Npy, SaysWhyRowsAreNoSamples) {
  EXPECT_THAT(WhyNotNpy(Dict("'|O'", "(2,)"), 8), HasSubstr("Python objects"));
  EXPECT_THAT(WhyNotNpy(Dict("'<f4'", "()"), 4), HasSubstr("a single value"));
  EXPECT_THAT(WhyNotNpy(Dict("'<f4'", "(2, 0)"), 0), HasSubstr("rows have no bytes"));
  EXPECT_THAT(WhyNotNpy(Dict("'<q4'", "(2,)"), 8), HasSubstr("its type <q4 is not known"));
  EXPECT_THAT(WhyNotNpy(Dict("'<f'", "(2,)"), 8), HasSubstr("its type <f is not known"));
  EXPECT_THAT(WhyNotNpy(Dict("'<f4x'", "(2,)"), 8), HasSubstr("its type <f4x is not known"));
  EXPECT_THAT(WhyNotNpy(Dict("''", "(2,)"), 8), HasSubstr("its type  is not known"));
  EXPECT_THAT(WhyNotNpy(Dict("[]", "(2,)"), 8), HasSubstr("its type [] is not known"));
  EXPECT_THAT(WhyNotNpy(Dict("[('a',)]", "(2,)"), 8), HasSubstr("is not known"));
}

TEST(Npy, FitsItsFile) {
  EXPECT_THAT(WhyNotNpy(Dict("'<f4'", "(10,)"), 39), HasSubstr("needs"));
  EXPECT_THAT(WhyNotNpy(Dict("'<f4'", "(10,)"), 39), HasSubstr("upload the file again"));
  EXPECT_THAT(WhyNotNpy(Dict("'<f4'", "(10,)"), 41), HasSubstr("each array to a file of its own"));
  EXPECT_THAT(WhyNotNpy(Dict("'<f4'", "(4294967296, 4294967296)")),
              HasSubstr("larger than any file"));
  EXPECT_THAT(WhyNotNpy(Dict("'<f4'", "(2, 99999999999999999999)")), HasSubstr("header"));
  EXPECT_THAT(WhyNotNpy(Dict("[('a', '<i4', (4294967296, 4294967296))]", "(1,)")),
              HasSubstr("larger than any file"));
  const std::string header = NpyHeader(Dict("'<f4'", "(1,)"), 1);
  EXPECT_THAT(ParseNpy("a", header.substr(0, 20), 100).error().message(), HasSubstr("cut short"));
  EXPECT_THAT(ParseNpy("a", header, 20).error().message(), HasSubstr("cut short"));
}

TEST(Npy, BoundsWhatMessagesQuote) {
  const std::string many(5000, '1');
  std::string axes;
  for (int i = 0; i < 1000; ++i)
    axes += "2,";
  for (const std::string& dict :
       {Dict("'<q" + many + "'", "(2,)"), Dict("[('a', " + many + ")]", "(2,)"),
        Dict("[(" + axes + ")]", "(2,)"), Dict("'<f4'", "(" + axes + ")"),
        Dict("'<f4'", "(" + axes + "'a')"), Dict("'<f4'", "(" + axes + "0)")}) {
    EXPECT_NE(WhyNotNpy(dict, 8), "");
    EXPECT_LT(WhyNotNpy(dict, 8).size(), 300U);
  }
}

TEST(Npy, SaysWhereTheHeaderIsWrong) {
  for (const char* dict :
       {"", "{", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", "{'descr' '<f4'}",
        "{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}", "{'color': 1}",
        "{'descr': '<f4', 'fortran_order': None, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
        "{'descr': ((((((((((((((((((((((1", "['descr']"})
    EXPECT_THAT(WhyNotNpy(dict), HasSubstr("its header is none that numpy writes")) << dict;
  EXPECT_THAT(WhyNotNpy("{'descr': '<f4', 'fortran_order': False, 'shape': 2}", 8),
              HasSubstr("its shape is no tuple"));
  EXPECT_THAT(WhyNotNpy(Dict("'<f4'", "('a', 2)")), HasSubstr("an axis without a number"));
  EXPECT_THAT(WhyNotNpy("{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}", 8),
              HasSubstr("neither True nor False"));
}

TEST(Npy, TellsOtherFiles) {
  EXPECT_EQ(NpyHeaderBytes("short").error().code(), Code::kInvalidArgument);
  EXPECT_THAT(NpyHeaderBytes("PK\x03\x04 is an .npz").error().message(),
              HasSubstr("this is no .npy file"));
  EXPECT_THAT(NpyHeaderBytes("\x93NUMPY\x04...........").error().message(),
              HasSubstr("of version 4"));
  EXPECT_THAT(
      NpyHeaderBytes(std::string_view("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)).error().message(),
      HasSubstr("its header has"));
  EXPECT_EQ(NpyHeaderBytes(std::string_view("\x93NUMPY\x01\x00\x76\x00{'", 12)).value(), 128U);
}

}  // namespace
}  // namespace optcache::dataset
