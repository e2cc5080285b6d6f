#include "net/http_client.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

#if defined(__clang__)
// cpprestsdk holds a unique_ptr to a type that it defines later. clang 19 instantiates the deleter
// at once, as unique_ptr is constexpr in C++23; so it is told here what that will be.
namespace web::json::details {
class _Value;  // NOLINT(bugprone-reserved-identifier): cpprestsdk's name
}
template <>
struct std::default_delete<web::json::details::_Value> {
  default_delete() = default;
  template <typename Derived>
  explicit(false) default_delete(const default_delete<Derived>& /*other*/) noexcept {}
  void operator()(web::json::details::_Value* value) const;
};
#endif

#include <cpprest/containerstream.h>
#include <cpprest/http_client.h>
#include <pplx/threadpool.h>

#include "base/check.h"
#include "base/mutex.h"

#if defined(__clang__)
void std::default_delete<web::json::details::_Value>::operator()(
    web::json::details::_Value* value) const {
  delete value;
}
#endif

namespace optcache::net {
namespace {

namespace rest = web::http;
using rest::client::http_client;

constexpr std::size_t kThreads = 2;      // of the process, for all clients
constexpr std::size_t kMaxServers = 64;  // whose connections are kept
constexpr std::size_t kReadStep = 64U << 10U;
// Of cpprestsdk itself; the request's own timeout comes first.
constexpr auto kLongestRequest = std::chrono::hours(1);

void SetUpThreadsOnce() {
  static const bool done = [] {
    crossplat::threadpool::initialize_with_threads(kThreads);
    return true;
  }();
  (void)done;
}

// The way from cpprestsdk's threads back to the loop; closed when the client dies. Thread-safe.
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

// A body that is being read, piece by piece, so that its limit holds while it comes.
struct BodyReader {
  concurrency::streams::istream stream;
  ByteCount limit = 0;
  std::string body;
  bool over_limit = false;
};

pplx::task<void> ReadBody(std::shared_ptr<BodyReader> reader) {
  concurrency::streams::container_buffer<std::string> piece;
  return reader->stream.read(piece, kReadStep).then([reader, piece](std::size_t n) mutable {
    if (n == 0) return pplx::task_from_result();
    reader->body.append(piece.collection(), 0, n);
    reader->over_limit = reader->body.size() > reader->limit;
    return reader->over_limit ? pplx::task_from_result() : ReadBody(reader);
  });
}

HttpResponse ToResponse(const rest::http_response& from) {
  HttpResponse response{.status = from.status_code()};
  for (const auto& [name, value] : from.headers())
    response.headers.emplace_back(name, value);
  return response;
}

rest::http_request ToRequest(const HttpRequest& from, const web::uri& uri) {
  rest::http_request request(from.method);
  request.set_request_uri(uri.resource());
  for (const auto& [name, value] : from.headers)
    request.headers().add(name, value);
  if (!from.body.empty()) {
    const auto type = FindHeader(from.headers, "Content-Type");
    request.set_body(from.body, std::string(type.value_or("application/octet-stream")));
  }
  return request;
}

// What the end of a task says. cpprestsdk reports by exceptions; they end here.
Result<HttpResponse> Outcome(const pplx::task<Result<HttpResponse>>& task) {
  try {
    return task.get();
  } catch (const pplx::task_canceled&) {
    return Error(Code::kCancelled, "the request was cancelled");
  } catch (const std::exception& error) {
    return Error(Code::kUnavailable, error.what());
  }
}

class CpprestClient final : public HttpClient {
 public:
  CpprestClient(EventLoop& loop, HttpClientOptions options)
      : loop_(loop), options_(options), way_back_(std::make_shared<ReturnPath>(loop)) {
    SetUpThreadsOnce();
  }
  ~CpprestClient() override {
    way_back_->Close();
    for (auto& [id, call] : calls_)
      call.cancellation.cancel();
  }
  CpprestClient(const CpprestClient&) = delete;
  CpprestClient& operator=(const CpprestClient&) = delete;

  void Send(HttpRequest request, Duration timeout, HttpCallback callback) override;
  std::unique_ptr<HttpStream> Stream(HttpRequest request, HttpStreamLimits limits,
                                     HttpStreamEvents events) override;

 private:
  struct Call {
    HttpCallback callback;
    pplx::cancellation_token_source cancellation;
    Timer timer;
  };

  Status Start(const HttpRequest& request, std::uint64_t id, Call& call);
  http_client& ClientOf(const web::uri& uri);
  void Finish(std::uint64_t id, Result<HttpResponse> result);

  EventLoop& loop_;
  const HttpClientOptions options_;
  std::shared_ptr<ReturnPath> way_back_;  // shared with tasks that outlive the client
  // Held by the client alone: what was posted before it died sees that it has.
  const std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
  std::map<std::string, http_client> servers_;
  std::map<std::uint64_t, Call> calls_;
  std::uint64_t last_id_ = 0;
};

void CpprestClient::Send(HttpRequest request, Duration timeout, HttpCallback callback) {
  const std::uint64_t id = ++last_id_;
  const bool full = calls_.size() >= options_.max_in_flight;
  Call& call = calls_[id];
  call.callback = std::move(callback);
  call.timer = loop_.After(timeout, [this, id, url = request.url] {
    Finish(id, Error(Code::kDeadlineExceeded, url + ": no response in time"));
  });
  Status status = full ? Status(Code::kResourceExhausted,
                                "too many HTTP requests are under way; wait for some to end")
                       : Start(request, id, call);
  if (status.ok()) return;
  loop_.Post([this, id, alive = std::weak_ptr(alive_), status = std::move(status)] {
    if (!alive.expired()) Finish(id, Error(status));
  });
}

std::unique_ptr<HttpStream> CpprestClient::Stream(HttpRequest request, HttpStreamLimits /*limits*/,
                                                  HttpStreamEvents events) {
  loop_.Post([url = std::move(request.url), on_end = std::move(events.on_end)] {
    on_end(Status(Code::kInternal, url + ": streams come with the next commit"));
  });
  return nullptr;
}

Status CpprestClient::Start(const HttpRequest& request, std::uint64_t id, Call& call) {
  try {
    const web::uri uri(request.url);
    if (uri.host().empty() || (uri.scheme() != "http" && uri.scheme() != "https")) {
      return {Code::kInvalidArgument, "'" + request.url + "' is not an http:// or https:// URL"};
    }
    const auto token = call.cancellation.get_token();
    ClientOf(uri)
        .request(ToRequest(request, uri), token)
        .then([limit = options_.max_body_bytes](const rest::http_response& response) {
          auto reader = std::make_shared<BodyReader>();
          reader->stream = response.body();
          reader->limit = limit;
          return ReadBody(reader).then([reader, response]() -> Result<HttpResponse> {
            if (reader->over_limit) {
              return Error(Code::kResourceExhausted,
                           "the response is longer than " + FormatBytes(reader->limit));
            }
            HttpResponse result = ToResponse(response);
            result.body = std::move(reader->body);
            return result;
          });
        })
        // The last continuation takes the task, so that no exception stays unobserved.
        .then([this, id, way_back = way_back_, alive = std::weak_ptr(alive_),
               url = request.url](const pplx::task<Result<HttpResponse>>& task) {
          auto result = Outcome(task);
          if (!result) result = Error(std::move(result).error().WithContext(url));
          way_back->Post([this, id, alive, result = std::move(result)]() mutable {
            if (!alive.expired()) Finish(id, std::move(result));
          });
        });
    return OkStatus();
  } catch (const web::uri_exception&) {
    return {Code::kInvalidArgument, "'" + request.url + "' is not a URL"};
  } catch (const std::exception& error) {
    return {Code::kInvalidArgument, request.url + ": " + error.what()};
  }
}

http_client& CpprestClient::ClientOf(const web::uri& uri) {
  const std::string server = uri.authority().to_string();
  const auto found = servers_.find(server);
  if (found != servers_.end()) return found->second;
  // A client that is destroyed lets its requests end.
  if (servers_.size() >= kMaxServers) servers_.erase(servers_.begin());
  rest::client::http_client_config config;
  config.set_timeout(kLongestRequest);
  config.set_max_redirects(0);
  return servers_.emplace(server, http_client(uri.authority(), config)).first->second;
}

void CpprestClient::Finish(std::uint64_t id, Result<HttpResponse> result) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;  // Its deadline came first.
  const auto node = calls_.extract(found);
  Call& call = node.mapped();
  call.cancellation.cancel();  // Stops what is still coming; nothing if it has ended.
  call.timer.Cancel();
  call.callback(std::move(result));
}

}  // namespace

std::unique_ptr<HttpClient> MakeHttpClient(EventLoop& loop, HttpClientOptions options) {
  return std::make_unique<CpprestClient>(loop, options);
}

}  // namespace optcache::net
