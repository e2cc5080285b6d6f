#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <gtest/gtest.h>

#include "kube/api_client.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "support/fake_api_server.h"

namespace optcache::kube {

// A real client that talks to a fake API server.
class ApiFixture : public testing::Test {
 protected:
  // Runs the loop until something is true, which it must be within half a minute.
  void RunUntil(const std::function<bool()>& done) {
    bool late = false;
    const net::Timer limit = loop.After(std::chrono::seconds(30), [&] {
      late = true;
      loop.Stop();
    });
    net::Timer next;
    std::function<void()> look;
    look = [&] {
      if (done()) return loop.Stop();
      next = loop.After(std::chrono::microseconds(500), look);
    };
    look();
    loop.Run();
    ASSERT_FALSE(late) << "it did not happen within 30 seconds";
  }
  // Lets the loop turn for so long: to see that something does not happen.
  void RunFor(Duration time) {
    const net::Timer end = loop.After(time, [this] { loop.Stop(); });
    loop.Run();
  }

  // Starts a request by `call`, which gets the callback, and waits for its result.
  template <typename T = Json, typename Call>
  ApiResult<T> Wait(const Call& call) {
    std::optional<ApiResult<T>> result;
    call([&](ApiResult<T> answer) { result = std::move(answer); });
    EXPECT_FALSE(result.has_value());  // Never from within the call.
    RunUntil([&] { return result.has_value(); });
    if (!result) return std::unexpected(MakeApiError(Status(Code::kInternal, "no callback")));
    return *std::move(result);
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
  net::EventLoop loop;
  std::unique_ptr<net::HttpClient> http = net::MakeHttpClient(loop);
  ApiAccess access{.server = server.url()};
  std::unique_ptr<ApiClient> client = MakeApiClient(loop, SystemClock(), *http, access);
};

}  // namespace optcache::kube
