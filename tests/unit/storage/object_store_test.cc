#include "storage/object_store.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::storage {
namespace {

using testing::HasSubstr;

class RequestTest : public testing::Test {
 protected:
  ReadRequest Request(std::string object, ByteCount offset, size_t length, ByteCount size) {
    return {.object = std::move(object),
            .offset = offset,
            .destination = MutableByteSpan(buffer_).first(length),
            .object_size = size,
            .validator = {},
            .deadline = Deadline(MonotonicTime::max())};
  }
  std::array<std::byte, 100> buffer_ = {};
};

TEST_F(RequestTest, RangesStayWithinTheObject) {
  EXPECT_TRUE(CheckReadRequest(Request("a", 0, 10, 10)).ok());
  EXPECT_TRUE(CheckReadRequest(Request("a", 9, 1, 10)).ok());
  EXPECT_TRUE(CheckReadRequest(Request("a", 0, 0, 0)).ok());
  EXPECT_EQ(CheckReadRequest(Request("a", 9, 2, 10)).code(), Code::kInvalidArgument);
  EXPECT_EQ(CheckReadRequest(Request("a", 11, 1, 10)).code(), Code::kInvalidArgument);
  EXPECT_EQ(CheckReadRequest(Request("a", 0, 0, 10)).code(), Code::kInvalidArgument);
  EXPECT_EQ(CheckReadRequest(Request("a", ~ByteCount{0}, 2, 10)).code(), Code::kInvalidArgument);
}

TEST_F(RequestTest, PathsStayWithinTheRoot) {
  EXPECT_EQ(CheckReadRequest(Request("../a", 0, 1, 1)).code(), Code::kInvalidArgument);
  EXPECT_EQ(CheckReadRequest(Request("/a", 0, 1, 1)).code(), Code::kInvalidArgument);
}

TEST_F(RequestTest, IsDescribedByObjectAndRange) {
  EXPECT_EQ(Describe(Request("a/b", 5, 10, 100)), "a/b bytes 5-14");
  EXPECT_EQ(Describe(Request("a/b", 0, 0, 0)), "a/b (empty)");
}

TEST_F(RequestTest, AChangeIsAConflictThatSaysWhat) {
  ReadRequest request = Request("a", 0, 10, 10);
  request.validator = {.modified_ns = 7, .etag = "\"x\""};
  EXPECT_TRUE(
      CheckUnchanged(Describe(request), request.listed(), {.size = 10, .validator = {}}).ok());
  EXPECT_TRUE(CheckUnchanged(Describe(request), request.listed(),
                             {.size = 10, .validator = request.validator})
                  .ok());
  const Status size =
      CheckUnchanged(Describe(request), request.listed(), {.size = 11, .validator = {}});
  EXPECT_EQ(size.code(), Code::kConflict);
  EXPECT_THAT(size.message(), HasSubstr("size was 10, is 11. Index the dataset again: "));
  const Status etag =
      CheckUnchanged(Describe(request), request.listed(),
                     {.size = 10, .validator = {.modified_ns = 0, .etag = "\"y\""}});
  EXPECT_THAT(etag.message(), HasSubstr("ETag was \"x\", is \"y\""));
  const Status time = CheckUnchanged(Describe(request), request.listed(),
                                     {.size = 10, .validator = {.modified_ns = 8, .etag = {}}});
  EXPECT_EQ(time.code(), Code::kConflict);
}

TEST(ETags, AreComparedWeakly) {
  EXPECT_FALSE(ETagsDiffer("W/\"a\"", "\"a\""));
  EXPECT_TRUE(ETagsDiffer("W/\"a\"", "W/\"b\""));
  EXPECT_FALSE(ETagsDiffer("", "\"b\""));
}

}  // namespace
}  // namespace optcache::storage
