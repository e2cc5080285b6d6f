#include "cli/terminal/text_table.h"

#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

TEST(FormatTable, LinesColumnsUpByCodePoints) {
  EXPECT_EQ(FormatTable({{"A", "B"}, {"größe", "1"}, {"x", "22"}}),
            "A      B\n"
            "größe  1\n"
            "x      22\n");
}

TEST(FormatTable, LeavesNoBlanksAtTheEnd) {
  EXPECT_EQ(FormatTable({{"A", "B"}, {"long", ""}}), "A     B\nlong\n");
}

TEST(FormatTable, ShowsControlCharactersAndDoesNotObeyThem) {
  EXPECT_EQ(FormatTable({{"A", "B"}, {"\x1b[2J\nx", "1"}}),
            "A                 B\n"
            "\\u001b[2J\\u000ax  1\n");
}

}  // namespace
}  // namespace optcache::cli
