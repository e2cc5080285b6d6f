#pragma once

// One question to several servers that can all answer it, until one has: each is asked on its own
// and again, with backoff, and later ones a moment after the first. So a server that swallows
// packets holds up nothing.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/backoff.h"
#include "base/result.h"
#include "net/event_loop.h"
#include "net/http_client.h"

namespace optcache::sidecar {

struct MultiEndpointOptions {
  std::vector<std::string> urls;  // the nearest first
  Duration head_start = {};       // of each place before the next
  Duration request_timeout = {};  // until an answer begins, its question having gone out whole
  BackoffOptions backoff;
  std::uint64_t seed = 0;  // of the retries' jitter, another one in each pod
};

// Used on the loop's thread only; the destructor ends the asking.
class MultiEndpointRequest {
 public:
  struct Hooks {
    // An error counts as the place's answer.
    std::function<Result<net::HttpRequest>(const std::string& url)> request;
    // Nothing: the request is over. Else this place is asked again, not before this long. May not
    // destroy the request.
    std::function<std::optional<Duration>(const std::string& url, Result<net::HttpResponse>)>
        answer;
    // Where the body of an answer goes whose head, the status and the headers, has come. Null: into
    // the response. Else this place goes on alone, and the others are asked again if it fails.
    // Empty: always null.
    using Sink = std::shared_ptr<net::HttpBodySink>;
    std::function<Result<Sink>(const net::HttpResponse& head)> begin = nullptr;
  };
  // `http` outlives this. The first question is asked when the loop turns.
  MultiEndpointRequest(net::EventLoop& loop, net::HttpClient& http, MultiEndpointOptions options,
                       Hooks hooks);
  ~MultiEndpointRequest() = default;
  MultiEndpointRequest(const MultiEndpointRequest&) = delete;
  MultiEndpointRequest& operator=(const MultiEndpointRequest&) = delete;

  bool over() const { return over_; }

 private:
  struct Asker {
    std::string url;
    Backoff backoff;
    net::Timer timer;
    std::unique_ptr<net::HttpStream> stream = nullptr;
    net::HttpResponse response = {};
    Hooks::Sink sink = nullptr;
  };
  void Ask(Asker& asker);
  void OnHead(Asker& asker, int status, const net::HttpHeaders& headers);
  void OnBytes(Asker& asker, ByteSpan bytes);
  // Leaves all but this one alone.
  void Quiet(const Asker& asker);
  void OnAnswer(Asker& asker, Result<net::HttpResponse> response);

  net::EventLoop& loop_;
  net::HttpClient& http_;
  MultiEndpointOptions options_;
  Hooks hooks_;
  std::vector<std::unique_ptr<Asker>> askers_;  // timers hold their addresses
  bool over_ = false;
};

}  // namespace optcache::sidecar
