#include "opt4torch/safetensors.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::plan {
namespace {

using testing::HasSubstr;

// A file of this header and so many bytes of data.
std::string FileOf(const std::string& header, std::size_t data) {
  std::string bytes;
  for (std::size_t i = 0; i < 8; ++i)
    bytes += static_cast<char>(header.size() >> (8 * i) & 0xffU);
  return bytes + header + std::string(data, '\1');
}

std::string ErrorOf(const std::string& file) {
  const auto tensors = ParseSafetensors(AsBytes(file));
  if (tensors) return "no error";
  EXPECT_EQ(tensors.error().code(), Code::kInvalidArgument);
  return tensors.error().message();
}

TEST(Safetensors, FindsTensors) {
  const std::string file = FileOf(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"I64","shape":[2,1],"data_offsets":[3,19]},)"
      R"("a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}   )",
      19);
  const auto tensors = ParseSafetensors(AsBytes(file));
  ASSERT_TRUE(tensors) << tensors.error().message();
  ASSERT_EQ(tensors->size(), 2U);
  EXPECT_EQ(tensors->at("a").dtype, "U8");
  EXPECT_EQ(tensors->at("a").data.size(), 3U);
  EXPECT_EQ(FormatShape(tensors->at("b").shape), "[2, 1]");
  EXPECT_EQ(tensors->at("b").data.size(), 16U);
}

TEST(Safetensors, AnEmptyFileOfTensorsIsOne) {
  const auto tensors = ParseSafetensors(AsBytes(FileOf("{}      ", 0)));
  ASSERT_TRUE(tensors);
  EXPECT_TRUE(tensors->empty());
}

TEST(Safetensors, RefusesWhatIsNoHeader) {
  EXPECT_THAT(ErrorOf("short"), HasSubstr("5 bytes are no safetensors file"));
  EXPECT_THAT(ErrorOf(std::string(8, '\xff')), HasSubstr("at most 1048576 are read"));
  EXPECT_THAT(ErrorOf(FileOf("{}", 0).substr(0, 9)), HasSubstr("it is cut short"));
  EXPECT_THAT(ErrorOf(FileOf("[]", 0)), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(ErrorOf(FileOf(" {}", 0)), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(ErrorOf(FileOf("{\"a\":", 0)), HasSubstr("no JSON object"));
  EXPECT_THAT(ErrorOf(FileOf("{}x", 0)), HasSubstr("no JSON object"));
  EXPECT_THAT(ErrorOf(FileOf("{\"\xff\":1}", 0)), HasSubstr("no JSON object"));
  EXPECT_THAT(ErrorOf(FileOf(std::string(500'000, '{'), 0)), HasSubstr("no JSON object"));
}

TEST(Safetensors, RefusesWhatIsNoTensor) {
  constexpr const char* kIsOne = "it takes a dtype, a shape";
  for (const char* entry :
       {"1", "{}", R"({"dtype":1,"shape":[],"data_offsets":[0,0]})",
        R"({"dtype":"I64","shape":[-1],"data_offsets":[0,0]})",
        R"({"dtype":"I64","shape":[1.5],"data_offsets":[0,0]})",
        R"({"dtype":"I64","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,0]})",
        R"({"dtype":"I64","shape":[1],"data_offsets":[0]})",
        R"({"dtype":"I64","shape":[1],"data_offsets":[0,18446744073709551616]})"}) {
    EXPECT_THAT(ErrorOf(FileOf("{\"a\":" + std::string(entry) + "}", 0)), HasSubstr(kIsOne))
        << entry;
  }
}

TEST(Safetensors, EachByteOfTheDataBelongsToOneTensor) {
  const auto error_of = [](const char* a, const char* b, std::size_t data) {
    return ErrorOf(FileOf(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)" + std::string(a) +
                              R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + b + "}}",
                          data));
  };
  EXPECT_EQ(error_of("[0,2]", "[2,4]", 4), "no error");
  EXPECT_EQ(error_of("[2,4]", "[0,2]", 4), "no error");
  EXPECT_EQ(error_of("[0,0]", "[0,4]", 4), "no error");
  EXPECT_THAT(error_of("[0,2]", "[1,3]", 3), HasSubstr("those before it end at 2"));
  EXPECT_THAT(error_of("[0,2]", "[3,4]", 4), HasSubstr("'b': its data begin at byte 3"));
  EXPECT_THAT(error_of("[0,2]", "[2,4]", 5), HasSubstr("1 bytes at its end belong to no tensor"));
  EXPECT_THAT(error_of("[0,2]", "[2,4]", 3), HasSubstr("end at byte 4 of 3 that there are"));
  EXPECT_THAT(error_of("[2,0]", "[2,4]", 4), HasSubstr("end before they begin"));
}

TEST(Safetensors, ANameThatComesTwiceIsRefused) {
  const std::string entry = R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_THAT(ErrorOf(FileOf("{" + entry + "," + entry + "}", 0)), HasSubstr("name comes twice"));
}

TEST(Safetensors, WhatMessagesShowIsPlainText) {
  EXPECT_THAT(ErrorOf(FileOf(R"({"\u001b[2J":1})", 0)), HasSubstr("not printable ASCII"));
  EXPECT_THAT(ErrorOf(FileOf(R"({"a":{"dtype":"\u001b[2J","shape":[],"data_offsets":[0,0]}})", 0)),
              HasSubstr("it takes a dtype"));
}

TEST(Safetensors, TensorsAreLimited) {
  std::string header = "{";
  for (int i = 0; i < 65; ++i) {
    header += (i == 0 ? "\"t" : ",\"t") + std::to_string(i) +
              R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  EXPECT_THAT(ErrorOf(FileOf(header + "}", 0)), HasSubstr("65 tensors, at most 64"));
}

}  // namespace
}  // namespace optcache::plan
