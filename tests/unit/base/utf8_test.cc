#include "base/utf8.h"

#include <gtest/gtest.h>

namespace optcache {
namespace {

TEST(Utf8, KnowsWhatIsACharacter) {
  for (const char* text : {"", "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x90\x8d", "a\xc3\xa9z"})
    EXPECT_TRUE(IsUtf8(text)) << text;
  for (const char* text :
       {"\x80", "\xc3", "\xc0\xaf", "\xe2\x82", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf0\x9f\x90",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "ok\xff"})
    EXPECT_FALSE(IsUtf8(text)) << text;
  EXPECT_EQ(Utf8Length(""), 0U);
  EXPECT_EQ(Utf8Length("\xe2\x82\xac!"), 3U);
}

TEST(Utf8, IsCutBetweenCharactersAtAnyLimit) {
  const std::string text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x8d";
  for (std::size_t limit = 0; limit <= text.size(); ++limit) {
    const std::string cut = CutText(text, limit);
    EXPECT_LE(cut.size(), limit);
    EXPECT_GT(cut.size() + 4, limit) << "no more is left out than a character";
    EXPECT_TRUE(text.starts_with(cut));
    EXPECT_TRUE(IsUtf8(cut)) << limit;
  }
  EXPECT_EQ(CutText(text, 99), text);
}

TEST(Utf8, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(Visible("na\xc3\xafve \\ \""), "na\xc3\xafve \\ \"");
  EXPECT_EQ(Visible({"\0\x1b[0m\x7f", 6}), "\\u0000\\u001b[0m\\u007f");
  EXPECT_EQ(Visible("\xc2\x80\xc2\x9f\xc2\xa0"), "\\u0080\\u009f\xc2\xa0");
  EXPECT_EQ(Visible("\x9b\xe2\x82"), "\\x9b\\xe2\\x82");
  EXPECT_EQ(Visible("a\nb\tc", "\n"), "a\nb\\u0009c");
}

}  // namespace
}  // namespace optcache
