#include "kube/internal/api_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/callback_guard.h"
#include "kube/watch_decoder.h"

namespace optcache::kube {
namespace {

constexpr std::size_t kMaxErrorBytes = 64U << 10U;

class ApiWatch final : public WatchHandle {
 public:
  ApiWatch(net::HttpClient& http, net::HttpRequest request, std::string what,
           Duration idle_deadline, WatchCallbacks callbacks,
           std::function<void(int http_status)> on_response)
      : what_(std::move(what)),
        callbacks_(std::move(callbacks)),
        on_http_status_(std::move(on_response)),
        stream_(http.Stream(std::move(request), {.idle_deadline = idle_deadline},
                            {.on_response =
                                 [this](int status, const net::HttpHeaders& headers) {
                                   OnResponse(status, headers);
                                 },
                             .on_bytes = [this](ByteSpan bytes) { OnBytes(bytes); },
                             .on_end = [this](const Status& status) { OnEnd(status); }})) {}

 private:
  void OnResponse(int http_status, const net::HttpHeaders& headers) {
    on_http_status_(http_status);
    http_status_ = http_status;
    if (!IsSuccess(http_status)) headers_ = headers;
  }
  void OnBytes(ByteSpan bytes);
  void OnEnd(const Status& status);
  void End(std::optional<ApiError> error);

  const std::string what_;
  const WatchCallbacks callbacks_;
  const std::function<void(int)> on_http_status_;
  int http_status_ = 0;
  net::HttpHeaders headers_;  // of an error
  std::string error_body_;
  WatchDecoder decoder_;
  std::unique_ptr<net::HttpStream> stream_;
  // An event's callback may destroy the watch: then the rest of its bytes is nobody's.
  CallbackGuard guard_;
};

void ApiWatch::OnBytes(ByteSpan bytes) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): text is bytes
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!IsSuccess(http_status_)) {
    error_body_ += text.substr(0, kMaxErrorBytes - std::min(kMaxErrorBytes, error_body_.size()));
    return;
  }
  std::vector<DecodedEvent> events;
  const Status status = decoder_.Feed(text, events);
  const CallbackGuard::Token watch = guard_.token();
  for (DecodedEvent& event : events) {
    if (auto* error = std::get_if<ApiError>(&event)) {
      error->status = std::move(error->status).WithContext(what_);
      return End(std::move(*error));
    }
    callbacks_.on_event(std::move(std::get<WatchEvent>(event)));
    if (watch.expired()) return;
  }
  if (!status.ok()) End(MakeApiError(Status(status).WithContext(what_)));
}

void ApiWatch::OnEnd(const Status& status) {
  if (!status.ok()) return End(MakeApiError(Status(status).WithContext(what_)));
  if (!IsSuccess(http_status_)) {
    return End(MakeApiError(http_status_, headers_, error_body_, what_));
  }
  if (Status cut = decoder_.Finish(); !cut.ok()) {
    return End(MakeApiError(std::move(cut).WithContext(what_)));
  }
  End(std::nullopt);
}

void ApiWatch::End(std::optional<ApiError> error) {
  stream_.reset();
  const auto on_end = callbacks_.on_end;  // It may destroy this.
  on_end(std::move(error));
}

}  // namespace

std::unique_ptr<WatchHandle> StartApiWatch(net::HttpClient& http, net::HttpRequest request,
                                           std::string what, Duration idle_deadline,
                                           WatchCallbacks callbacks,
                                           std::function<void(int http_status)> on_response) {
  return std::make_unique<ApiWatch>(http, std::move(request), std::move(what), idle_deadline,
                                    std::move(callbacks), std::move(on_response));
}

}  // namespace optcache::kube
