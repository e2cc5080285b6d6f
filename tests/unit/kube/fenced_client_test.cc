#include "kube/fenced_client.h"

#include <gtest/gtest.h>

#include "unit/kube/scripted_client.h"

namespace optcache::kube {
namespace {

TEST(FencedClient, GivesWritesThePermitAndReadsNone) {
  ScriptedClient client;
  const auto until = MonotonicTime(std::chrono::seconds(5));
  FencedClient fenced(client, [&] { return until; });
  const auto ignore = [](const ApiResult<Json>&) {};
  const Json pod = MakeObject(kPods, {.ns = "a", .name = "b"});
  fenced.Get(kPods, {.ns = "a", .name = "b"}, ignore);
  fenced.List(kPods, {}, ignore);
  fenced.Create(kPods, pod, ignore);
  fenced.Update(kPods, pod, ignore);
  fenced.Apply(kPods, pod, {.field_manager = "m"}, ignore);
  fenced.Delete(kPods, {.ns = "a", .name = "b"}, {}, [](const ApiResult<void>&) {});
  ASSERT_EQ(client.waiting.size(), 6U);
  for (const auto& [request, callback] : client.waiting) {
    const bool permitted = request.permit && request.permit() == until;
    EXPECT_EQ(permitted, IsWrite(request.verb));
  }
  fenced.Watch({.resource = kPods}, {});
  EXPECT_EQ(client.watches.size(), 1U);
}

}  // namespace
}  // namespace optcache::kube
