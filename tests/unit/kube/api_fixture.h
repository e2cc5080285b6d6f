#pragma once

#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "kube/api_client.h"
#include "net/http_client.h"
#include "support/fake_api_server.h"
#include "unit/kube/loop_fixture.h"

namespace optcache::kube {

// A real client that talks to a fake API server.
class ApiFixture : public LoopFixture {
 protected:
  // As the base's; a client never answers from within the call.
  template <typename T = Json, typename Call>
  ApiResult<T> Wait(const Call& call) {
    return LoopFixture::Wait<T>([&](auto done) {
      const auto within = std::make_shared<bool>(true);
      call([=](ApiResult<T> answer) {
        EXPECT_FALSE(*within);
        done(std::move(answer));
      });
      *within = false;
    });
  }

  static Json Pod(const std::string& name, const std::string& ns = "vision") {
    return MakeObject(kPods, {.ns = ns, .name = name});
  }
  static ObjectKey Key(const std::string& name, const std::string& ns = "vision") {
    return {.ns = ns, .name = name};
  }
  void Put(const Json& pod) {
    server.store([&](FakeApiStore& store) { store.Put(kPods, pod); });
  }

  FakeApiServer server;
  std::unique_ptr<net::HttpClient> http = net::MakeHttpClient(loop);
  ApiAccess access{.server = server.url()};
  std::unique_ptr<ApiClient> client = MakeApiClient(loop, SystemClock(), *http, access);
};

}  // namespace optcache::kube
