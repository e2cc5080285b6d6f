#pragma once

// An HTTP client that answers from the test.

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/callback_guard.h"
#include "net/http_client.h"

namespace optcache::node {

class FakeHttp final : public net::HttpClient {
 public:
  void Send(net::HttpRequest request, Duration /*timeout*/, net::HttpCallback callback) override {
    requests.push_back(std::move(request));
    waiting.push_back(std::move(callback));
  }
  // Its answer comes with a Content-Length, in one piece.
  std::unique_ptr<net::HttpStream> Stream(net::HttpRequest request,
                                          net::HttpStreamLimits /*limits*/,
                                          net::HttpStreamEvents events) override {
    auto stream = std::make_unique<FakeStream>();
    const auto shared = std::make_shared<const net::HttpStreamEvents>(std::move(events));
    Send(std::move(request), {},
         stream->guard.Wrap(
             [life = stream->guard.token(), shared](const Result<net::HttpResponse>& response) {
               Tell(life, shared, response);
             }));
    return stream;
  }
  // The oldest request that waits gets this answer.
  void Answer(Result<net::HttpResponse> response) {
    const net::HttpCallback callback = std::move(waiting.front());
    waiting.pop_front();
    callback(std::move(response));
  }

  std::vector<net::HttpRequest> requests;
  std::deque<net::HttpCallback> waiting;

 private:
  struct FakeStream final : net::HttpStream {
    CallbackGuard guard;
  };
  static void Tell(const CallbackGuard::Token& life,
                   const std::shared_ptr<const net::HttpStreamEvents>& events,
                   const Result<net::HttpResponse>& response) {
    if (!response) return events->on_end(response.error());
    net::HttpHeaders headers = response->headers;
    headers.emplace_back("Content-Length", std::to_string(response->body.size()));
    events->on_response(response->status, headers);
    if (life.expired()) return;
    events->on_piece(response->body, [life, events] {
      if (!life.expired()) events->on_end(OkStatus());
    });
  }
};

}  // namespace optcache::node
