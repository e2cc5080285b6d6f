#include "api/warmup.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace optcache::api {
namespace {

std::string ErrorOf(const char* spec) {
  const auto parsed = ParseWarmupSpec({{"spec", nlohmann::json::parse(spec)}});
  return parsed ? "" : std::string(parsed.error().message());
}

TEST(ParseWarmupSpec, ReadsEveryField) {
  const auto spec = ParseWarmupSpec(
      {{"spec", {{"dataset", "d"}, {"bandwidth", "5Mi"}, {"ttlSecondsAfterFinished", 60}}}});
  ASSERT_TRUE(spec) << spec.error().message();
  EXPECT_EQ(*spec, (WarmupSpec{.dataset = "d", .bandwidth = 5_MiB, .ttl_seconds = 60}));
}

TEST(ParseWarmupSpec, NamesTheFieldOfEachError) {
  EXPECT_EQ(ErrorOf(R"({"dataset": "d", "bandwidth": 0})"),
            "spec.bandwidth: 0, allowed: a quantity above 0");
  EXPECT_EQ(ErrorOf(R"({"dataset": "d", "when": "OnIndexed", "ttlSecondsAfterFinished": 0})"),
            "spec.ttlSecondsAfterFinished: not with when OnIndexed, which does not end");
  EXPECT_EQ(ErrorOf(R"({"dataset": "a/b"})"),
            "spec.dataset: 'a/b', allowed: a-z, 0-9, - and dots, a letter or digit at both ends "
            "of each part");
  const auto long_name = ParseWarmupSpec(
      {{"metadata", {{"name", std::string(64, 'a')}}}, {"spec", {{"dataset", "d"}}}});
  ASSERT_FALSE(long_name);
  EXPECT_EQ(long_name.error().message(),
            "metadata.name: at most 63 characters, as it becomes the value of a label");
}

}  // namespace
}  // namespace optcache::api
