#include "cli/warmup/warm_progress.h"

#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

constexpr const char* kWarmed =
    R"({"samples":6,"totalSamples":10,"totalBytes":1000,"held":2,"heldBytes":200,"read":3,)"
    R"("readBytes":300,"noRoom":1,"failed":0})";

TEST(WarmProgress, IsReadFromLinesAndAddedUp) {
  const WarmProgress one = ParseWarmProgress(kWarmed);
  EXPECT_EQ(one, (WarmProgress{.samples = 6,
                               .total_samples = 10,
                               .total_bytes = 1000,
                               .held = 2,
                               .held_bytes = 200,
                               .read = 3,
                               .read_bytes = 300,
                               .no_room = 1}));
  const WarmProgress sum = SumOf({one, one, {}});
  EXPECT_EQ(sum.total_samples, 20U);
  EXPECT_EQ(sum.bytes(), 1000U);
  for (const char* text : {"", "{", "[1]", R"({"samples":-1})", R"({"samples":"6"})"})
    EXPECT_EQ(ParseWarmProgress(text), WarmProgress()) << text;
}

TEST(WarmProgress, ABarIsFullAtTheEndAlone) {
  EXPECT_EQ(WarmBar(0), "[--------------------]   0 %");
  EXPECT_EQ(WarmBar(0.999), "[###################-]  99 %");
  EXPECT_EQ(WarmBar(1), "[####################] 100 %");
  EXPECT_EQ(WarmBar(7), WarmBar(1));
}

TEST(WarmProgress, ALineSaysHowMuchAndHowLong) {
  const WarmProgress progress = ParseWarmProgress(kWarmed);
  EXPECT_EQ(WarmLine("images", progress, 0),
            "images  [############--------]  60 %  500 B of 1000 B");
  EXPECT_EQ(WarmLine("images", progress, 100),
            "images  [############--------]  60 %  500 B of 1000 B  100 B/s  5 s left");
}

TEST(WarmProgress, TheEndIsASentence) {
  const WarmProgress progress = ParseWarmProgress(kWarmed);
  EXPECT_EQ(WarmSummary("images", progress, std::chrono::milliseconds(1500)),
            "images: 5 samples (500 B) lie at nodes: 2 were there, 3 (300 B) were read in 1.5 s; "
            "nodes have no room for 1 more\n");
}

TEST(WarmProgress, WhatCouldNotBeReadIsSaid) {
  const WarmProgress one = ParseWarmProgress(
      R"({"samples":2,"totalSamples":2,"read":1,"failed":1,"firstFailure":"a.jpg is gone"})");
  const WarmProgress sum = SumOf({{}, one, one});
  EXPECT_TRUE(WarmSummary("images", sum, std::chrono::seconds(1))
                  .ends_with("; 2 could not be read, first: a.jpg is gone\n"));
  EXPECT_TRUE(WarmAsJson("images", sum, {}).contains(R"("firstFailure": "a.jpg is gone")"));
  EXPECT_EQ(ParseWarmProgress(R"({"firstFailure":[7]})"), WarmProgress());
}

}  // namespace
}  // namespace optcache::cli
