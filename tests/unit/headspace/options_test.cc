#include "headspace/options.h"

#include <gtest/gtest.h>

namespace optcache::headspace {
namespace {

TEST(HeadspaceOptions, TrueAsksForTheUsual) {
  EXPECT_EQ(ParseOptions("true").value(), Options{});
}

TEST(HeadspaceOptions, WhatIsNotSaidIsAsUsual) {
  const Options options = ParseOptions("steps=400,run-steps=90000").value();
  EXPECT_EQ(options.steps, 400U);
  EXPECT_EQ(options.run_steps, 90000U);
  EXPECT_EQ(options.free_steps, Options{}.free_steps);
}

TEST(HeadspaceOptions, TheirTextGivesThemAgain) {
  for (const Options& options :
       {Options{},
        Options{.warmup_steps = 0, .steps = 20, .free_steps = 1'000'000, .run_steps = 7}}) {
    EXPECT_EQ(ParseOptions(FormatOptions(options)).value(), options);
  }
}

TEST(HeadspaceOptions, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "'' is not understood"},
      {"yes", "'yes' is not understood"},
      {"steps", "'steps' is not understood"},
      {"steps=200,", "'' is not understood"},
      {"step=200", "'step' is not known"},
      {"steps=19", "steps='19' is no whole number from 20 to 1000000"},
      {"steps=1000001", "steps='1000001'"},
      {"steps=-20", "steps='-20'"},
      {"steps=2e2", "steps='2e2'"},
      {"free-steps=", "free-steps=''"},
      {"run-steps=0", "run-steps='0'"},
      {"steps=99999999999999999999999", "is no whole number"},
      {"steps=50,steps=60", "steps is said twice"},
  };
  for (const auto& [text, expected] : cases) {
    const auto options = ParseOptions(text);
    ASSERT_FALSE(options.has_value()) << text;
    EXPECT_EQ(options.error().code(), Code::kInvalidArgument);
    EXPECT_NE(options.error().message().find(expected), std::string::npos)
        << options.error().message();
  }
}

}  // namespace
}  // namespace optcache::headspace
