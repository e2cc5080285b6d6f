#include "base/log.h"

#include <gtest/gtest.h>

namespace optcache {
namespace {

TEST(FormatLogLine, QuotesWhatNeedsIt) {
  EXPECT_EQ(FormatLogLine(LogFormat::kText, "read failed",
                          {{"object", "a b.png"}, {"attempt", 2}, {"why", "say \"no\""}}),
            R"(read failed object="a b.png" attempt=2 why="say \"no\"")");
}

// What comes from outside neither ends a line nor tells a terminal what to do.
TEST(FormatLogLine, QuotesWhatATerminalObeys) {
  const auto text = [](std::string_view value) {
    return FormatLogLine(LogFormat::kText, "x", {{"a", value}});
  };
  EXPECT_EQ(text("\x1b[2J"), R"(x a="\u001b[2J")");
  EXPECT_EQ(text("a\rb"), R"(x a="a\u000db")");
  EXPECT_EQ(text("a\x7f"), R"(x a="a\u007f")");
  EXPECT_EQ(text("a\xc2\x9b"
                 "31m"),
            R"(x a="a\u009b31m")");
  EXPECT_EQ(text("a\x9b\xff"), R"(x a="a\\x9b\\xff")");
  EXPECT_EQ(text("\xc3\xa9"), "x a=\xc3\xa9");
  EXPECT_EQ(FormatLogLine(LogFormat::kText, "a\nb", {}), R"(a\u000ab)");
}

TEST(FormatLogLine, IsJsonWhateverComes) {
  EXPECT_EQ(FormatLogLine(LogFormat::kJson, "x", {{"a", "\x7f\xff\xc3\xa9\""}}),
            "\"event\":\"x\",\"a\":\"\\u007f\\\\xff\xc3\xa9\\\"\"");
}

TEST(FormatLogLine, WritesJson) {
  EXPECT_EQ(FormatLogLine(LogFormat::kJson, "x", {{"a", "1\n"}}), R"("event":"x","a":"1\u000a")");
}

// What a program prints is read by others: a benchmark that did not set up its log wrote a line of
// it into its JSON.
TEST(Log, WritesToStderrBeforeItIsSetUp) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Log(LogLevel::kWarning, "source refused", {{"source", "127.0.0.1"}});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_TRUE(testing::internal::GetCapturedStderr().ends_with(
      "Z warning optcache source refused source=127.0.0.1\n"));
}

}  // namespace
}  // namespace optcache
