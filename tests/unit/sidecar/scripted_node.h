#pragma once

// A node's HTTP server on the loopback that answers by a script, and the loop to run it with.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/http_client.h"
#include "net/http_server.h"

namespace optcache::sidecar {

// Answers each request with the next of its script, the last one again and again; with an empty
// script not at all.
class ScriptedNode {
 public:
  ScriptedNode(net::EventLoop& loop, std::vector<net::HttpResponse> script)
      : script_(std::move(script)) {
    server_ = net::ListenHttp(loop, "127.0.0.1:0", {},
                              [this](const net::HttpRequest& request, net::HttpResponder respond) {
                                requests.push_back(request);
                                if (script_.empty()) return kept_.push_back(std::move(respond));
                                respond(script_.front());
                                if (script_.size() > 1) script_.erase(script_.begin());
                              })
                  .value();
  }
  // To those who were not answered.
  void AnswerAll(const net::HttpResponse& response) {
    for (const net::HttpResponder& respond : kept_)
      respond(response);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }

  std::vector<net::HttpRequest> requests;

 private:
  std::vector<net::HttpResponse> script_;
  std::vector<net::HttpResponder> kept_;
  std::unique_ptr<net::HttpServer> server_;
};

class LoopTest : public testing::Test {
 protected:
  void RunUntil(const std::function<bool()>& done) {
    const net::Timer limit = loop_.After(std::chrono::minutes(2), [this] { loop_.Stop(); });
    Look(done);
    loop_.Run();
    EXPECT_TRUE(done()) << "not within two minutes";
  }
  void RunFor(Duration time) {
    const net::Timer end = loop_.After(time, [this] { loop_.Stop(); });
    loop_.Run();
  }

  net::EventLoop loop_;
  std::unique_ptr<net::HttpClient> http_ = net::MakeHttpClient(loop_);

 private:
  void Look(const std::function<bool()>& done) {
    look_ = loop_.After(std::chrono::milliseconds(1),
                        [this, &done] { done() ? loop_.Stop() : Look(done); });
  }
  net::Timer look_;
};

}  // namespace optcache::sidecar
