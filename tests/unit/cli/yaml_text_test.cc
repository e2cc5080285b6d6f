#include "cli/terminal/yaml_text.h"

#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

TEST(YamlText, QuotesTextAndKeysThatWouldBeReadAsSomethingElse) {
  EXPECT_EQ(ToYaml(R"({"a": "1", "on": true, "1": null, "b": [], "c": [0.5], "y": 2, "1_0": 3})"),
            "a: \"1\"\n\"on\": true\n\"1\": ~\nb: []\nc:\n  - 0.5\n\"y\": 2\n\"1_0\": 3\n");
}

TEST(YamlText, RemarksStandAboveTheirDocument) {
  EXPECT_EQ(ToYaml({{.remarks = {"One.", "  command --of several"}, .json = R"({"a": 1})"},
                    {.remarks = {}, .json = R"({"b": 2})"}}),
            "# One.\n#   command --of several\na: 1\n---\nb: 2\n");
}

TEST(YamlText, RemarksAreBrokenAtBlanksAndCommandsAreNot) {
  const std::string word(30, 'x');
  const std::string four = word + " " + word + " " + word + " " + word;
  const std::string text = ToYaml({{.remarks = {four, " " + four}, .json = "{}"}});
  EXPECT_TRUE(text.starts_with("# " + word + " " + word + " " + word + "\n# " + word + "\n#  " +
                               four + "\n"))
      << text;
  const std::string endless(300, 'y');
  EXPECT_TRUE(ToYaml({{.remarks = {endless + " end"}, .json = "{}"}})
                  .starts_with("# " + endless + "\n# end\n"));
}

TEST(YamlText, ARemarkStaysAComment) {
  EXPECT_TRUE(ToYaml({{.remarks = {"a\nkind: Secret"}, .json = "{}"}})
                  .starts_with("# a\\u000akind: Secret\n"));
  EXPECT_TRUE(ToYaml({{.remarks = {"a\u2028b: 1\u2029c: 2"}, .json = "{}"}})
                  .starts_with("# a b: 1 c: 2\n"));
}

}  // namespace
}  // namespace optcache::cli
