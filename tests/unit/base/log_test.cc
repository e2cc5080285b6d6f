#include "base/log.h"

#include <gtest/gtest.h>

namespace optcache {
namespace {

TEST(FormatLogLine, QuotesWhatNeedsIt) {
  EXPECT_EQ(FormatLogLine(LogFormat::kText, "read failed",
                          {{"object", "a b.png"}, {"attempt", 2}, {"why", "say \"no\""}}),
            R"(read failed object="a b.png" attempt=2 why="say \"no\"")");
}

TEST(FormatLogLine, WritesJson) {
  EXPECT_EQ(FormatLogLine(LogFormat::kJson, "x", {{"a", "1\n"}}), R"("event":"x","a":"1\u000a")");
}

}  // namespace
}  // namespace optcache
