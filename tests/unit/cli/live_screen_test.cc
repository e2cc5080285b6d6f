#include "cli/terminal/live_screen.h"

#include <unistd.h>

#include <array>

#include <gtest/gtest.h>

#include "base/unique_fd.h"

namespace optcache::cli {
namespace {

TEST(FitToScreen, CutsLinesAndRows) {
  EXPECT_EQ(FitToScreen("abcdef\nä¹²³x\nthird\n", 4, 2), "abcd\nä¹²³\n");
  EXPECT_EQ(FitToScreen("ab\n", 4, 2), "ab\n");
  EXPECT_EQ(FitToScreen("", 4, 2), "");
}

TEST(LiveScreen, WritesOnlyNewsWhereThereIsNoTerminal) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const UniqueFd in(ends[1]);
  const UniqueFd out(ends[0]);
  LiveScreen screen(in.get());
  screen.Draw("table\n");
  screen.Say("news");
  std::array<char, 64> text{};
  EXPECT_EQ(::read(out.get(), text.data(), text.size()), 5);
  EXPECT_STREQ(text.data(), "news\n");
}

}  // namespace
}  // namespace optcache::cli
