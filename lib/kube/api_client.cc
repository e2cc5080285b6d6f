// Sends requests to the API server: they queue for places, and wait as the server asks.
//
//   Call ─► Enqueue ─► waiting_ ─► SendWaiting ─► Send ─► OnResponse ─► Finish ─► callback
//              ▲                                              │ 429, overload, a token refused
//              └───────────── resting_, as long as asked ◄────┘ SendAgain
//
// The idea: the server's limits are everybody's, so a request waits for one of max_in_flight
// places, and a refusal is waited out as the server asks, with some jitter. A permit (leadership)
// is asked each time a request is sent, and bounds its time, so that nothing is written after it
// has ended.
//
// Invariants: a request is at one place at a time, waiting_, resting_ or in flight, and its one
// deadline covers all of it. A callback comes once, never from within Call, and is the last thing
// done, as it may destroy the client.

#include "kube/api_client.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/callback_guard.h"
#include "base/histogram.h"
#include "base/random.h"
#include "kube/internal/api_watch.h"
#include "kube/internal/bearer_token.h"
#include "kube/internal/rest_requests.h"

namespace optcache::kube {
namespace {

// When the server says "slow down" and not for how long.
constexpr Duration kDefaultRetryAfter = std::chrono::seconds(1);

class HttpApiClient final : public ApiClient {
 public:
  HttpApiClient(net::EventLoop& loop, const Clock& clock, net::HttpClient& http,
                const ApiAccess& access, ApiClientOptions options)
      : loop_(loop),
        clock_(clock),
        http_(http),
        server_(access.server),
        options_(std::move(options)),
        token_(access.token_file, options_.token_max_age),
        random_(options_.seed) {}

  void Call(ApiRequest request, ObjectCallback callback) override;
  std::unique_ptr<WatchHandle> Watch(WatchRequest request, WatchCallbacks callbacks) override;
  void VisitCounters(const CounterVisitor& visitor) const override;

 private:
  struct Pending {
    ApiRequest request;
    std::string what;  // for messages: "get pods a/b"
    ObjectCallback callback;
    MonotonicTime began;
    MonotonicTime deadline;
    std::uint32_t retries = 0;
    bool token_renewed = false;
    net::Timer timer;  // of its deadline, or of a wait that the server asked for
  };
  using PendingPtr =
      std::shared_ptr<Pending>;  // shared by the queue and the callbacks on their way

  void Enqueue(PendingPtr pending);
  void SendWaiting();
  void Send(const PendingPtr& pending);
  void OnResponse(const PendingPtr& pending, Result<net::HttpResponse> response);
  bool SendAgain(const PendingPtr& pending, const ApiError& error);
  void FinishLater(const PendingPtr& pending, ApiError error);
  void Finish(const PendingPtr& pending, ApiResult<Json> result);
  Result<net::HttpHeaders> Headers();

  net::EventLoop& loop_;
  const Clock& clock_;
  net::HttpClient& http_;
  const std::string server_;
  const ApiClientOptions options_;
  BearerToken token_;
  Random random_;
  std::deque<PendingPtr> waiting_;  // for a place
  std::set<PendingPtr> resting_;    // as the server asked
  std::size_t in_flight_ = 0;
  std::map<std::pair<std::string, std::string>, std::uint64_t> requests_;  // by code and method
  std::map<std::pair<std::string, std::string>, std::uint64_t> retries_;   // by code and verb
  std::map<Verb, Histogram> durations_;
  CallbackGuard guard_;  // last
};

void HttpApiClient::Call(ApiRequest request, ObjectCallback callback) {
  auto pending = std::make_shared<Pending>();
  pending->what = Describe(request);
  pending->callback = std::move(callback);
  pending->began = clock_.Now();
  pending->deadline =
      pending->began +
      (request.timeout > Duration::zero() ? request.timeout : options_.request_timeout);
  pending->request = std::move(request);
  if (waiting_.size() >= options_.max_waiting) {
    return FinishLater(pending, MakeApiError(Status(Code::kResourceExhausted,
                                                    pending->what + ": too many requests to the "
                                                                    "API server wait already")));
  }
  Enqueue(std::move(pending));
}

void HttpApiClient::Enqueue(PendingPtr pending) {
  pending->timer = loop_.After(pending->deadline - clock_.Now(), [this, pending = pending.get()] {
    const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const PendingPtr& p) { return p.get() == pending; });
    if (found == waiting_.end()) return;
    const PendingPtr late = std::move(*found);
    waiting_.erase(found);
    Finish(late, std::unexpected(MakeApiError(
                     Status(Code::kDeadlineExceeded,
                            late->what + ": too many requests to the API server are under way"))));
  });
  waiting_.push_back(std::move(pending));
  SendWaiting();
}

void HttpApiClient::SendWaiting() {
  while (in_flight_ < options_.max_in_flight && !waiting_.empty()) {
    const PendingPtr pending = std::move(waiting_.front());
    waiting_.pop_front();
    pending->timer.Cancel();
    Send(pending);
  }
}

void HttpApiClient::Send(const PendingPtr& pending) {
  const MonotonicTime now = clock_.Now();
  MonotonicTime deadline = pending->deadline;
  if (pending->request.permit) {
    const auto until = pending->request.permit();
    if (!until || *until <= now) {
      return FinishLater(
          pending, MakeApiError(Status(Code::kCancelled,
                                       pending->what + ": not sent, this process does not lead")));
    }
    deadline = std::min(deadline, *until);
  }
  auto headers = Headers();
  if (!headers) return FinishLater(pending, MakeApiError(std::move(headers).error()));
  ++in_flight_;
  http_.Send(ToHttp(server_, pending->request, *std::move(headers)), deadline - now,
             guard_.Wrap([this, pending](Result<net::HttpResponse> response) {
               --in_flight_;
               SendWaiting();
               OnResponse(pending, std::move(response));  // Last: its callback may end the client.
             }));
}

Result<net::HttpHeaders> HttpApiClient::Headers() {
  ASSIGN_OR_RETURN(const std::string token, token_.Get(clock_.Now()));
  net::HttpHeaders headers = {{"Accept", "application/json"}, {"User-Agent", options_.user_agent}};
  if (!token.empty()) headers.emplace_back("Authorization", "Bearer " + token);
  return headers;
}

void HttpApiClient::OnResponse(const PendingPtr& pending, Result<net::HttpResponse> response) {
  const std::string method(HttpMethod(pending->request.verb));
  if (!response) {
    ++requests_[{"<error>", method}];
    return Finish(
        pending,
        std::unexpected(MakeApiError(std::move(response).error().WithContext(pending->what))));
  }
  ++requests_[{std::to_string(response->status), method}];
  if (!IsSuccess(response->status)) {
    ApiError error =
        MakeApiError(response->status, response->headers, response->body, pending->what);
    if (SendAgain(pending, error)) return;
    return Finish(pending, std::unexpected(std::move(error)));
  }
  Json object = Json::parse(response->body, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return Finish(pending, std::unexpected(MakeApiError(
                               Status(Code::kDataLoss, pending->what + ": not a JSON object"))));
  }
  Finish(pending, std::move(object));
}

bool HttpApiClient::SendAgain(const PendingPtr& pending, const ApiError& error) {
  const MonotonicTime now = clock_.Now();
  Duration wait{};
  if (error.unauthorized() && token_.present() && !pending->token_renewed) {
    token_.Invalidate();
    pending->token_renewed = true;
  } else {
    const bool asked = error.http_status == 429 || (error.http_status == 503 && error.retry_after);
    if (!asked || ++pending->retries > options_.max_retries) return false;
    // Up to a tenth more, so that clients that were turned away together do not come back so.
    const Duration least = error.retry_after.value_or(kDefaultRetryAfter);
    wait = std::chrono::duration_cast<Duration>(least * (1 + random_.Unit() / 10));
    if (now + wait >= pending->deadline) return false;
    ++retries_[{std::to_string(error.http_status), std::string(VerbName(pending->request.verb))}];
  }
  resting_.insert(pending);
  pending->timer = loop_.After(wait, [this, pending = pending.get()] {
    const auto found = std::find_if(resting_.begin(), resting_.end(),
                                    [&](const PendingPtr& p) { return p.get() == pending; });
    PendingPtr again = std::move(resting_.extract(found).value());
    Enqueue(std::move(again));
  });
  return true;
}

void HttpApiClient::FinishLater(const PendingPtr& pending, ApiError error) {
  loop_.Post(guard_.Wrap([this, pending, error = std::move(error)]() mutable {
    Finish(pending, std::unexpected(std::move(error)));
  }));
}

void HttpApiClient::Finish(const PendingPtr& pending, ApiResult<Json> result) {
  pending->timer.Cancel();
  const Duration took = clock_.Now() - pending->began;
  durations_.try_emplace(pending->request.verb, kSecondsBounds)
      .first->second.Observe(ToSeconds(took));
  pending->callback(std::move(result));
}

std::unique_ptr<WatchHandle> HttpApiClient::Watch(WatchRequest request, WatchCallbacks callbacks) {
  auto headers = Headers();
  const auto on_response = guard_.Wrap([this](int http_status) {
    ++requests_[{std::to_string(http_status), "GET"}];
    if (http_status == 401) token_.Invalidate();
  });
  // Without a token the server says what it thinks of that.
  return StartApiWatch(http_, ToHttp(server_, request, headers.value_or(net::HttpHeaders())),
                       Describe(request), request.idle_deadline, std::move(callbacks), on_response);
}

void HttpApiClient::VisitCounters(const CounterVisitor& visitor) const {
  for (const auto& [key, count] : requests_) {
    visitor(MetricKind::kCounter, "rest_client_requests_total",
            {{"code", key.first}, {"method", key.second}}, static_cast<double>(count));
  }
  for (const auto& [key, count] : retries_) {
    visitor(MetricKind::kCounter, "rest_client_request_retries_total",
            {{"code", key.first}, {"verb", key.second}}, static_cast<double>(count));
  }
  for (const auto& [verb, histogram] : durations_) {
    histogram.Visit(visitor, "rest_client_request_duration_seconds",
                    {{"verb", std::string(VerbName(verb))}});
  }
  visitor(MetricKind::kGauge, "rest_client_requests_waiting", {},
          static_cast<double>(waiting_.size()));
}

}  // namespace

std::unique_ptr<ApiClient> MakeApiClient(net::EventLoop& loop, const Clock& clock,
                                         net::HttpClient& http, const ApiAccess& access,
                                         ApiClientOptions options) {
  return std::make_unique<HttpApiClient>(loop, clock, http, access, std::move(options));
}

}  // namespace optcache::kube
