#include "cli/dashboard/variable_values.h"

#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

TEST(VariableValues, AreAskedForAsGrafanaDoes) {
  const auto question = ParseLabelQuestion("label_values(m{a=\"1\",b=~\"$c\"}, job)");
  ASSERT_TRUE(question);
  EXPECT_EQ(question->selector, "m{a=\"1\",b=~\"$c\"}");
  EXPECT_EQ(question->label, "job");
  EXPECT_EQ(ValuesQuery("m", "job", {.from = 10, .to = 70.5, .step = 1}),
            "group by (job) (last_over_time(m[61s]))");
  EXPECT_FALSE(ParseLabelQuestion("query_result(up)"));
  EXPECT_FALSE(ParseLabelQuestion("label_values(job)"));
  EXPECT_FALSE(ParseLabelQuestion(""));
}

TEST(VariableValues, OneThatIsNotThereIsToldWithThoseThatAre) {
  EXPECT_FALSE(NoteOfUnknownValue("node", "a", {"a", "b"}));
  EXPECT_EQ(NoteOfUnknownValue("node", "c", {"a", "b"}),
            "--var node=c: Prometheus has no such value in that time; it has a, b");
  EXPECT_EQ(NoteOfUnknownValue("node", "c", {}),
            "--var node=c: Prometheus has no such value in that time; it has none at all");
  EXPECT_TRUE(
      NoteOfUnknownValue("node", "x", {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"})
          ->ends_with("i, j and 2 more"));
}

}  // namespace
}  // namespace optcache::cli
