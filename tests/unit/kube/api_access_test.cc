#include <stdlib.h>

#include <fstream>

#include <gtest/gtest.h>

#include "kube/api_client.h"
#include "support/temp_dir.h"

namespace optcache::kube {
namespace {

TEST(InClusterAccess, OutsideOfAClusterIsAnError) {
  ::unsetenv("KUBERNETES_SERVICE_HOST");
  const auto access = InClusterAccess("/nowhere");
  ASSERT_FALSE(access.has_value());
  EXPECT_EQ(access.error().code(), Code::kInvalidArgument);
}

TEST(InClusterAccess, ComesFromTheEnvironmentAndTheFilesOfThePod) {
  const TempDir dir;
  std::ofstream(dir.Join("namespace")) << "optcache-system";
  ::setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
  ::setenv("KUBERNETES_SERVICE_PORT", "443", 1);
  const auto access = InClusterAccess(dir.path());
  ::unsetenv("KUBERNETES_SERVICE_HOST");
  ::unsetenv("KUBERNETES_SERVICE_PORT");
  ASSERT_TRUE(access.has_value());
  EXPECT_EQ(access->server, "https://[fd00::1]:443");
  EXPECT_EQ(access->server_name, "kubernetes.default.svc");
  EXPECT_EQ(access->ca_file, dir.path() + "/ca.crt");
  EXPECT_EQ(access->token_file, dir.path() + "/token");
  EXPECT_EQ(access->ns, "optcache-system");
}

}  // namespace
}  // namespace optcache::kube
