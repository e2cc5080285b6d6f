#include "api/cache_plan.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace optcache::api {
namespace {

using Json = nlohmann::json;

TEST(ParseCachePlanSpec, ReadsWhatIsActedOn) {
  const auto plan = ParseCachePlanSpec(
      Json::parse(R"({"spec": {"dataset": "d", "retention": "LRU", "objective": "Requests"}})"));
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(*plan, (CachePlanSpec{.dataset = "d",
                                  .retention = Retention::kLru,
                                  .objective = plan::Objective::kRequests}));
  EXPECT_EQ(ParseCachePlanSpec(Json::object()).error().message(),
            "spec: missing, write spec: {dataset: …}");
}

}  // namespace
}  // namespace optcache::api
