#pragma once

#include <functional>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "kube/api_error.h"
#include "kube/client.h"
#include "net/event_loop.h"

namespace optcache::kube {

// Tests whose code runs on an event loop.
class LoopFixture : public testing::Test {
 protected:
  explicit LoopFixture(Duration patience = std::chrono::minutes(2)) : patience_(patience) {}

  // Runs the loop until something is true, which it must be in time.
  void RunUntil(const std::function<bool()>& done) { RunUntil(done, patience_); }
  void RunUntil(const std::function<bool()>& done, Duration limit) {
    bool late = false;
    const net::Timer end = loop.After(limit, [&] {
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
    ASSERT_FALSE(late) << "it did not happen in time";
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
    RunUntil([&] { return result.has_value(); });
    if (!result) return std::unexpected(MakeApiError(Status(Code::kInternal, "no callback")));
    return *std::move(result);
  }

  net::EventLoop loop;

 private:
  const Duration patience_;
};

}  // namespace optcache::kube
