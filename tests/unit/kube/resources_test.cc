#include "kube/resources.h"

#include <gtest/gtest.h>

namespace optcache::kube {
namespace {

TEST(Resource, TheCoreGroupHasNoName) {
  EXPECT_EQ(kPods.ApiVersion(), "v1");
  EXPECT_EQ(kJobs.ApiVersion(), "batch/v1");
}

TEST(Resource, PathsNameWhatIsGiven) {
  EXPECT_EQ(kPods.Path("", ""), "/api/v1/pods");
  EXPECT_EQ(kPods.Path("vision", ""), "/api/v1/namespaces/vision/pods");
  EXPECT_EQ(kJobs.Path("vision", "a", "status"), "/apis/batch/v1/namespaces/vision/jobs/a/status");
  EXPECT_EQ(kNodes.Path("ignored", "node1"), "/api/v1/nodes/node1");
}

TEST(Resource, NoNameLeavesItsPlaceInThePath) {
  EXPECT_EQ(kPods.Path("a/../b", "x?y"), "/api/v1/namespaces/a%2F..%2Fb/pods/x%3Fy");
}

}  // namespace
}  // namespace optcache::kube
