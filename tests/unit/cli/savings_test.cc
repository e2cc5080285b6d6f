#include "cli/status/savings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace optcache::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kPage = R"(# HELP optcache_saved_bytes Bytes
# TYPE optcache_saved_bytes gauge
optcache_saved_bytes{dataset="vision/images"} 3221225472
optcache_saved_bytes{dataset="vision/text"} -2048
# TYPE optcache_saved_requests gauge
optcache_saved_requests{dataset="vision/images"} 1.5e+06
optcache_saved_requests{dataset="vision/text"} -2
# TYPE optcache_saved_cost gauge
optcache_saved_cost{dataset="vision/images"} 12.5
optcache_store_requests_total{dataset="vision/images"} 7
)";

TEST(Savings, AreSummedOverSidecars) {
  const std::vector<Savings> savings = SavingsIn(ParseMetrics(std::string(kPage) + kPage));
  EXPECT_THAT(
      savings,
      ElementsAre(
          Savings{.dataset = "vision/images", .requests = 3e6, .bytes = 6442450944, .cost = 25},
          Savings{.dataset = "vision/text", .requests = -4, .bytes = -4096, .cost = std::nullopt}));
}

TEST(Savings, AreOfADataset) {
  EXPECT_THAT(SavingsIn(ParseMetrics("optcache_saved_bytes 3\noptcache_saved_cost{a=\"b\"} 3\n")),
              ElementsAre());
}

TEST(Savings, AreATableThatSaysAgainstWhat) {
  EXPECT_EQ(FormatSavings({.samples = ParseMetrics(kPage), .asked = 1}),
            "Saved by the sidecars that run, compared with the same reads without a cache:\n"
            "DATASET        SAVED REQUESTS  SAVED BYTES  SAVED MONEY\n"
            "vision/images  1500000         3.00 GiB     12.50\n"
            "vision/text    -2              -2.00 KiB    -\n");
  EXPECT_EQ(FormatSavings({.samples = {}, .asked = 1}), "");
}

TEST(Savings, MayBeAnyNumbers) {
  const std::string table =
      FormatSavings({.samples = ParseMetrics("optcache_saved_bytes{dataset=\"a\"} 1e300\n"
                                             "optcache_saved_bytes{dataset=\"b\"} NaN\n"),
                     .asked = 1});
  EXPECT_THAT(table, HasSubstr("\na        0               8.00 EiB     -\n"));
  EXPECT_THAT(table, HasSubstr("\nb        0               0 B          -\n"));
}

TEST(Savings, SayHowManySidecarsDidNotAnswer) {
  const std::string silent = "2 of 3 sidecars did not answer: what they saved is not known.\n";
  EXPECT_EQ(FormatSavings({.samples = {}, .asked = 3, .silent = 2}), silent);
  EXPECT_THAT(FormatSavings({.samples = ParseMetrics(kPage), .asked = 3, .silent = 2}),
              StartsWith(silent + "Saved by the sidecars that run"));
}

TEST(Savings, AreAFieldOfTheStatusInJson) {
  const auto json =
      WithSavings(R"({"version": 7})", {.samples = ParseMetrics(kPage), .asked = 3, .silent = 2});
  ASSERT_TRUE(json) << json.error().ToString();
  EXPECT_EQ(nlohmann::json::parse(*json), nlohmann::json::parse(R"({"version": 7, "savings": {
    "sidecars": 3, "silent": 2, "datasets": [
      {"dataset": "vision/images", "requests": 1.5e6, "bytes": 3221225472.0, "cost": 12.5},
      {"dataset": "vision/text", "requests": -2.0, "bytes": -2048.0}]}})"));
  EXPECT_FALSE(WithSavings("<html>", {}));
}

}  // namespace
}  // namespace optcache::cli
