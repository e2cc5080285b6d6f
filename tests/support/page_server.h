#pragma once

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "net/http_server.h"

namespace optcache {

// An HTTP server with one page, /metrics, on a thread of its own. /late is the same page, `late`
// after it was asked for the first time, and then at once. All other pages are status 404.
class PageServer {
 public:
  explicit PageServer(std::string page, Duration late = {}) {
    const auto answer = [this, late, page = std::move(page)](const net::HttpRequest& request,
                                                             const net::HttpResponder& respond) {
      const bool is_late_page = request.path() == "/late";
      if (is_late_page && !std::exchange(was_late_, true)) {
        late_ = loop_.After(late, [page, respond] { respond({.status = 200, .body = page}); });
        return;
      }
      const bool is_there = is_late_page || request.path() == "/metrics";
      respond({.status = is_there ? 200 : 404, .body = page});
    };
    server_ = net::ListenHttp(loop_, "127.0.0.1:0", {}, answer).value();
    url_ = "http://127.0.0.1:" + std::to_string(server_->port());
    thread_ = std::jthread([this] { loop_.Run(); });
  }
  ~PageServer() { loop_.Stop(); }
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  // Without a path.
  const std::string& url() const { return url_; }

 private:
  net::EventLoop loop_;
  std::unique_ptr<net::HttpServer> server_;
  std::string url_;
  bool was_late_ = false;
  net::Timer late_;
  std::jthread thread_;  // the last member: it has ended before the others are destroyed
};

}  // namespace optcache
