// Brings requests and streams from the loop to cpprestsdk's thread, and their answers back.
//
//   loop     Send, Stream ─► calls_, streams_ ─► RestClient ─┐
//   thread   WholeResponse, ResponsePieces ◄─────────────────┘
//   loop     Finish, OnHead, OnBytes, EndStream ◄─ ReturnPath::Post
//
// The idea: two lifetimes must not meet. A listener outlives the client, so it posts through a
// ReturnPath, which the client closes when it dies. What was posted before finds that `alive_` is
// gone.
//
// Invariants: an id is in its map from the call to its one end, and whatever comes later, an answer
// after the deadline for example, finds nothing there. A stream reads on only after its listener
// has taken the piece before (Resume), so at most one piece of a stream waits.

#include "net/http_client.h"

#include <map>
#include <utility>

#include "base/mutex.h"
#include "net/internal/rest_client.h"
#include "net/internal/unix_http_client.h"

namespace optcache::net {
namespace {

// The way from cpprestsdk's thread back to the loop; closed when the client dies. Thread-safe.
class ReturnPath {
 public:
  explicit ReturnPath(EventLoop& loop) : loop_(&loop) {}

  void Post(std::function<void()> work) {
    const MutexLock lock(mutex_);
    if (loop_ != nullptr) loop_->Post(std::move(work));
  }
  void Close() {
    const MutexLock lock(mutex_);
    loop_ = nullptr;
  }

 private:
  Mutex mutex_;
  EventLoop* loop_ GUARDED_BY(mutex_);
};

// Collects a response on cpprestsdk's thread and hands it over whole.
class WholeResponse final : public RestListener {
 public:
  WholeResponse(ByteCount limit, std::string url, HttpCallback done)
      : limit_(limit), url_(std::move(url)), done_(std::move(done)) {}

  void OnHead(int status, HttpHeaders headers) override {
    response_.status = status;
    response_.headers = std::move(headers);
  }
  Next OnBytes(std::string_view bytes) override {
    if (bytes.size() > limit_ - response_.body.size()) {
      over_limit_ = true;
      return Next::kStop;
    }
    response_.body += bytes;
    return Next::kGoOn;
  }
  void OnEnd(Status status) override {
    if (over_limit_) {
      status =
          Status(Code::kResourceExhausted, "the response is longer than " + FormatBytes(limit_));
    }
    if (status.ok()) return done_(std::move(response_));
    done_(Error(std::move(status).WithContext(url_)));
  }

 private:
  const ByteCount limit_;
  const std::string url_;
  const HttpCallback done_;
  HttpResponse response_;
  bool over_limit_ = false;
};

// Hands a response over piece by piece.
class ResponsePieces final : public RestListener {
 public:
  // Called on cpprestsdk's thread.
  struct Events {
    std::function<void(int, HttpHeaders)> on_head;
    std::function<void(std::string)> on_bytes;
    std::function<void(Status)> on_end;
  };
  explicit ResponsePieces(Events events) : events_(std::move(events)) {}

  void OnHead(int status, HttpHeaders headers) override {
    events_.on_head(status, std::move(headers));
  }
  Next OnBytes(std::string_view bytes) override {
    events_.on_bytes(std::string(bytes));
    return Next::kWait;
  }
  void OnEnd(Status status) override { events_.on_end(std::move(status)); }

 private:
  const Events events_;
};

class CpprestClient final : public HttpClient {
 public:
  CpprestClient(EventLoop& loop, HttpClientOptions options)
      : loop_(loop),
        options_(std::move(options)),
        way_back_(std::make_shared<ReturnPath>(loop)),
        alive_(std::make_shared<CpprestClient*>(this)) {}
  ~CpprestClient() override {
    way_back_->Close();
    for (auto& [id, call] : calls_)
      if (call.exchange != nullptr) call.exchange->Cancel();
    for (auto& [id, stream] : streams_)
      if (stream.exchange != nullptr) stream.exchange->Cancel();
  }
  CpprestClient(const CpprestClient&) = delete;
  CpprestClient& operator=(const CpprestClient&) = delete;

  void Send(HttpRequest request, Duration timeout, HttpCallback callback) override;
  std::unique_ptr<HttpStream> Stream(HttpRequest request, HttpStreamLimits limits,
                                     HttpStreamEvents events) override;

 private:
  struct Call {
    HttpCallback callback;
    std::shared_ptr<RestExchange> exchange;
    Timer timer;
  };
  struct StreamCall {
    std::string url;
    HttpStreamLimits limits;
    std::shared_ptr<const HttpStreamEvents> events;  // shared with the event that is being told
    std::shared_ptr<RestExchange> exchange;
    Timer timer;
  };
  class StreamHandle;

  // May it go out? `under_way` of `limit` do.
  Status Admit(const HttpRequest& request, std::size_t under_way, std::size_t limit,
               std::string_view what) const;
  RestCall Describe(HttpRequest request) const;
  // Runs `work` on the loop, unless the client dies before. Thread-safe.
  void Later(std::function<void(CpprestClient&)> work) const {
    way_back_->Post([alive = std::weak_ptr(alive_), work = std::move(work)] {
      if (const auto client = alive.lock()) work(**client);
    });
  }

  void Finish(std::uint64_t id, Result<HttpResponse> result);
  std::shared_ptr<RestExchange> StartStream(std::uint64_t id, HttpRequest request);
  void OnHead(std::uint64_t id, int status, const HttpHeaders& headers);
  void OnBytes(std::uint64_t id, std::string bytes);
  void GoOn(std::uint64_t id);
  void AwaitBytes(std::uint64_t id, StreamCall& stream);
  void EndStream(std::uint64_t id, const Status& status);
  void DropStream(std::uint64_t id);

  EventLoop& loop_;
  const HttpClientOptions options_;
  const std::shared_ptr<ReturnPath> way_back_;  // shared with calls that outlive the client
  // Held by the client alone: what was posted before it died sees that it has. No CallbackGuard,
  // as handles and what other threads post have the client's address from here.
  const std::shared_ptr<CpprestClient*> alive_;
  RestClient rest_;
  std::map<std::uint64_t, Call> calls_;
  std::map<std::uint64_t, StreamCall> streams_;
  std::uint64_t last_id_ = 0;
};

class CpprestClient::StreamHandle final : public HttpStream {
 public:
  StreamHandle(std::weak_ptr<CpprestClient*> client, std::uint64_t id)
      : client_(std::move(client)), id_(id) {}
  ~StreamHandle() override {
    if (const auto client = client_.lock()) (*client)->DropStream(id_);
  }
  StreamHandle(const StreamHandle&) = delete;
  StreamHandle& operator=(const StreamHandle&) = delete;

 private:
  const std::weak_ptr<CpprestClient*> client_;
  const std::uint64_t id_;
};

Status CpprestClient::Admit(const HttpRequest& request, std::size_t under_way, std::size_t limit,
                            std::string_view what) const {
  if (under_way >= limit) {
    return {Code::kResourceExhausted,
            "too many HTTP " + std::string(what) + " are under way; wait for some to end"};
  }
  if (options_.tls != nullptr && !options_.tls->ready() && request.url.starts_with("https:")) {
    return {Code::kUnavailable, request.url + ": the CA bundle has not been read yet"};
  }
  return OkStatus();
}

RestCall CpprestClient::Describe(HttpRequest request) const {
  return {.request = std::move(request),
          .material = options_.tls == nullptr ? nullptr : options_.tls->material(),
          .server_name = options_.server_name};
}

// --- Requests -----------------------------------------------------------------------------------

void CpprestClient::Send(HttpRequest request, Duration timeout, HttpCallback callback) {
  const std::uint64_t id = ++last_id_;
  Status status = Admit(request, calls_.size(), options_.max_in_flight, "requests");
  Call& call = calls_[id];
  call.callback = std::move(callback);
  if (!status.ok()) {
    return Later([id, status = std::move(status)](CpprestClient& client) {
      client.Finish(id, Error(status));
    });
  }
  call.timer = loop_.After(timeout, [this, id, url = request.url] {
    Finish(id, Error(Code::kDeadlineExceeded, url + ": no response in time"));
  });
  auto listener = std::make_shared<WholeResponse>(
      options_.max_body_bytes, request.url,
      [id, way_back = way_back_, alive = std::weak_ptr(alive_)](Result<HttpResponse> result) {
        way_back->Post([id, alive, result = std::move(result)]() mutable {
          if (const auto client = alive.lock()) (*client)->Finish(id, std::move(result));
        });
      });
  call.exchange = rest_.Start(Describe(std::move(request)), std::move(listener));
}

void CpprestClient::Finish(std::uint64_t id, Result<HttpResponse> result) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;  // Its deadline came first.
  const auto node = calls_.extract(found);
  Call& call = node.mapped();
  if (call.exchange != nullptr) call.exchange->Cancel();  // Nothing if it has ended.
  call.timer.Cancel();
  call.callback(std::move(result));
}

// --- Streams ------------------------------------------------------------------------------------

std::unique_ptr<HttpStream> CpprestClient::Stream(HttpRequest request, HttpStreamLimits limits,
                                                  HttpStreamEvents events) {
  const std::uint64_t id = ++last_id_;
  Status status = Admit(request, streams_.size(), options_.max_streams, "streams");
  StreamCall& stream = streams_[id];
  stream.url = request.url;
  stream.limits = limits;
  stream.events = std::make_shared<const HttpStreamEvents>(std::move(events));
  if (status.ok()) {
    stream.timer = loop_.After(limits.response_deadline, [this, id] {
      EndStream(id, Status(Code::kDeadlineExceeded, "no response in time"));
    });
    stream.exchange = StartStream(id, std::move(request));
  } else {
    Later(
        [id, status = std::move(status)](CpprestClient& client) { client.EndStream(id, status); });
  }
  return std::make_unique<StreamHandle>(alive_, id);
}

std::shared_ptr<RestExchange> CpprestClient::StartStream(std::uint64_t id, HttpRequest request) {
  const auto later = [way_back = way_back_,
                      alive = std::weak_ptr(alive_)](std::function<void(CpprestClient&)> work) {
    way_back->Post([alive, work = std::move(work)] {
      if (const auto client = alive.lock()) work(**client);
    });
  };
  return rest_.Start(
      Describe(std::move(request)),
      std::make_shared<ResponsePieces>(ResponsePieces::Events{
          .on_head =
              [later, id](int status, const HttpHeaders& headers) {
                later([id, status, headers](CpprestClient& client) {
                  client.OnHead(id, status, headers);
                });
              },
          .on_bytes =
              [later, id](std::string bytes) {
                later([id, bytes = std::move(bytes)](CpprestClient& client) mutable {
                  client.OnBytes(id, std::move(bytes));
                });
              },
          .on_end =
              [later, id](const Status& status) {
                later([id, status](CpprestClient& client) { client.EndStream(id, status); });
              }}));
}

void CpprestClient::OnHead(std::uint64_t id, int status, const HttpHeaders& headers) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  AwaitBytes(id, found->second);
  const auto events = found->second.events;
  events->on_response(status, headers);
}

void CpprestClient::OnBytes(std::uint64_t id, std::string bytes) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const auto events = found->second.events;
  if (events->on_piece) {
    found->second.timer.Cancel();  // It is not the server that we wait for.
    return events->on_piece(std::move(bytes), [id, client = std::weak_ptr(alive_)] {
      if (const auto alive = client.lock()) (*alive)->GoOn(id);
    });
  }
  const auto exchange = found->second.exchange;
  AwaitBytes(id, found->second);
  events->on_bytes(AsBytes(bytes));
  exchange->Resume();
}

void CpprestClient::GoOn(std::uint64_t id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  AwaitBytes(id, found->second);
  found->second.exchange->Resume();
}

void CpprestClient::AwaitBytes(std::uint64_t id, StreamCall& stream) {
  stream.timer = loop_.After(stream.limits.idle_deadline, [this, id] {
    EndStream(id, Status(Code::kDeadlineExceeded, "nothing came in time"));
  });
}

void CpprestClient::EndStream(std::uint64_t id, const Status& status) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const auto events = found->second.events;
  const std::string url = found->second.url;
  DropStream(id);
  events->on_end(status.ok() ? status : Status(status).WithContext(url));
}

void CpprestClient::DropStream(std::uint64_t id) {
  const auto node = streams_.extract(id);
  if (!node.empty() && node.mapped().exchange != nullptr) node.mapped().exchange->Cancel();
}

}  // namespace

std::unique_ptr<HttpClient> MakeHttpClient(EventLoop& loop, HttpClientOptions options) {
  if (!options.unix_socket.empty()) return MakeUnixHttpClient(loop, std::move(options));
  return std::make_unique<CpprestClient>(loop, std::move(options));
}

}  // namespace optcache::net
