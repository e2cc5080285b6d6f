#pragma once

// An HTTP client that answers from the test.

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "net/http_client.h"

namespace optcache::node {

class FakeHttp final : public net::HttpClient {
 public:
  void Send(net::HttpRequest request, Duration /*timeout*/, net::HttpCallback callback) override {
    requests.push_back(std::move(request));
    waiting.push_back(std::move(callback));
  }
  std::unique_ptr<net::HttpStream> Stream(net::HttpRequest /*request*/,
                                          net::HttpStreamLimits /*limits*/,
                                          net::HttpStreamEvents /*events*/) override {
    return nullptr;
  }
  // The oldest request that waits gets this answer.
  void Answer(Result<net::HttpResponse> response) {
    const net::HttpCallback callback = std::move(waiting.front());
    waiting.pop_front();
    callback(std::move(response));
  }

  std::vector<net::HttpRequest> requests;
  std::deque<net::HttpCallback> waiting;
};

}  // namespace optcache::node
