#pragma once

// An HTTP server that asks about bodies first, and bodies that go to sinks and come from sources.

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/http_body.h"
#include "unit/net/http_server_fixture.h"

namespace optcache::net {

class HttpHeadTest : public HttpServerTest {
 protected:
  void StartChecking(HttpServerOptions options = {}) {
    options.check_head = [this](const HttpRequest& head,
                                std::function<void(HttpHeadRuling)> decide) {
      heads.push_back(head);
      decisions.push_back(std::move(decide));
    };
    Start(std::move(options));
  }
  void RunUntilAsked() {
    RunUntil(loop, [&] { return !decisions.empty(); });
  }
  static std::string Put(const std::string& more = "") {
    return "PUT /big HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\nConnection: close\r\n" +
           more + "\r\n";
  }

  std::vector<HttpRequest> heads;
  std::vector<std::function<void(HttpHeadRuling)>> decisions;
};

class StringSink final : public HttpBodySink {
 public:
  Status Write(std::string_view bytes) override {
    if (!status.ok()) return status;
    ++pieces;
    all += bytes;
    return OkStatus();
  }
  std::string all;
  int pieces = 0;
  Status status;
};

class StringSource final : public HttpBodySource {
 public:
  explicit StringSource(std::string text) : text_(std::move(text)) {}
  ByteCount size() const override { return text_.size(); }
  Result<std::string> Read(std::size_t most) override {
    if (sent_ >= fails_at) return Error(Code::kDataLoss, "damaged");
    std::string piece = text_.substr(sent_, most);
    sent_ += piece.size();
    return piece;
  }
  std::size_t fails_at = ~std::size_t{0};

 private:
  std::string text_;
  std::size_t sent_ = 0;
};

class LongSource final : public HttpBodySource {
 public:
  explicit LongSource(ByteCount size) : size_(size) {}
  ByteCount size() const override { return size_; }
  Result<std::string> Read(std::size_t most) override { return std::string(most, 'x'); }

 private:
  const ByteCount size_;
};

class HttpPiecesTest : public HttpHeadTest {
 protected:
  HttpPiecesTest() {
    handler = [this](const HttpRequest& request, const HttpResponder& respond) {
      if (request.sink != nullptr) return respond(HttpResponse::Text(201, "taken\n"));
      respond({.headers = {{"ETag", "x"}}, .source = source});
    };
  }
  // Work off the loop, that ends when the test says so.
  void StartBlocking(HttpServerOptions options = {}) {
    options.blocking = [this](std::function<void()> job, std::function<void()> end) -> Status {
      if (refuses) return {Code::kResourceExhausted, "busy with others"};
      jobs.emplace_back(std::move(job), std::move(end));
      return OkStatus();
    };
    StartChecking(std::move(options));
  }
  void RunUntilJob() {
    RunUntil(loop, [&] { return !jobs.empty(); });
  }
  void DoOne() {
    const auto [job, end] = std::move(jobs.front());
    jobs.pop_front();
    job();
    end();
  }

  std::shared_ptr<StringSink> sink = std::make_shared<StringSink>();
  std::shared_ptr<StringSource> source;
  std::deque<std::pair<std::function<void()>, std::function<void()>>> jobs;
  bool refuses = false;
};

}  // namespace optcache::net
