#include "operator/manager/proxy_variables.h"

#include <gtest/gtest.h>

namespace optcache::manager {
namespace {

using kube::Json;

TEST(ProxyVariables, AreThoseThatCurlReads) {
  const ProxyOptions both{.http = "http://proxy:3128",
                          .https = "http://user:pa$(NAME)@proxy:3129",
                          .none = ".svc,10.0.0.0/8"};
  EXPECT_EQ(ProxyVariables(both), Json::parse(R"([
      {"name": "http_proxy", "value": "http://proxy:3128"},
      {"name": "https_proxy", "value": "http://user:pa$$(NAME)@proxy:3129"},
      {"name": "no_proxy", "value": ".svc,10.0.0.0/8"}])"));
  EXPECT_EQ(ProxyVariables({.http = "", .https = "http://proxy:3128", .none = ""}),
            Json::parse(R"([{"name": "https_proxy", "value": "http://proxy:3128"}])"));
}

TEST(ProxyVariables, AreNoneWithoutAProxy) {
  EXPECT_EQ(ProxyVariables({.http = "", .https = "", .none = ".svc"}), Json::array());
}

}  // namespace
}  // namespace optcache::manager
