#include "base/result.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace optcache {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return Error(Code::kInvalidArgument, "odd");
  return n / 2;
}

Result<std::string> QuarterAsText(int n) {
  ASSIGN_OR_RETURN(const int half, Half(n));
  ASSIGN_OR_RETURN(const int quarter, Half(half));
  return std::to_string(quarter);
}

Status CheckQuarter(int n) {
  RETURN_IF_ERROR(QuarterAsText(n));
  return OkStatus();
}

Result<std::unique_ptr<int>> Boxed(int n) {
  ASSIGN_OR_RETURN(int half, Half(n));
  return std::make_unique<int>(half);
}

TEST(Result, PassesValuesAndErrorsOn) {
  EXPECT_EQ(QuarterAsText(12).value(), "3");
  EXPECT_EQ(QuarterAsText(6).error().code(), Code::kInvalidArgument);
}

TEST(Result, ReturnIfErrorTakesStatusAndResult) {
  EXPECT_TRUE(CheckQuarter(8).ok());
  EXPECT_EQ(CheckQuarter(2).message(), "odd");
}

TEST(Result, MovesOwners) {
  EXPECT_EQ(**Boxed(4), 2);
}

}  // namespace
}  // namespace optcache
