#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kube/client.h"

namespace optcache::kube {

// A client whose answers the test gives, one after the other. Callbacks run inside Answer.
class ScriptedClient final : public Client {
 public:
  void Call(ApiRequest request, ObjectCallback callback) override {
    waiting.emplace_back(std::move(request), std::move(callback));
  }
  std::unique_ptr<WatchHandle> Watch(WatchRequest request, WatchCallbacks callbacks) override {
    watches.emplace_back(std::move(request), std::move(callbacks));
    return std::make_unique<WatchHandle>();
  }

  // Of the oldest request that waits, which there must be.
  const ApiRequest& Next() const { return waiting.front().first; }
  void Answer(ApiResult<Json> result) {
    ASSERT_FALSE(waiting.empty()) << "nobody has asked";
    const auto [request, callback] = std::move(waiting.front());
    waiting.pop_front();
    callback(std::move(result));
  }
  void Fail(int http_status, const std::string& reason = "") {
    Answer(std::unexpected(MakeApiError(
        Json{{"code", http_status}, {"reason", reason}, {"message", "scripted"}}, "test")));
  }

  std::deque<std::pair<ApiRequest, ObjectCallback>> waiting;
  std::vector<std::pair<WatchRequest, WatchCallbacks>> watches;
};

}  // namespace optcache::kube
