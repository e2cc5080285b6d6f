#include "sidecar/manifests/multi_endpoint_request.h"

#include <algorithm>
#include <utility>

namespace optcache::sidecar {
namespace {

constexpr ByteCount kAnswerBytesMax = 64_KiB;  // without a sink: a sentence

}  // namespace

MultiEndpointRequest::MultiEndpointRequest(net::EventLoop& loop, net::HttpClient& http,
                                           MultiEndpointOptions options, Hooks hooks)
    : loop_(loop), http_(http), options_(std::move(options)), hooks_(std::move(hooks)) {
  for (const std::string& url : options_.urls) {
    const std::size_t number = askers_.size();
    askers_.push_back(
        std::make_unique<Asker>(Asker{.url = url,
                                      .backoff = Backoff(options_.backoff, options_.seed + number),
                                      .timer = net::Timer()}));
    Asker& asker = *askers_.back();
    asker.timer = loop_.After(options_.head_start * number, [this, &asker] { Ask(asker); });
  }
}

void MultiEndpointRequest::Ask(Asker& asker) {
  auto request = hooks_.request(asker.url);
  if (!request) return OnAnswer(asker, Error(std::move(request).error()));
  asker.stream =
      http_.Stream(*std::move(request), {.response_deadline = options_.request_timeout},
                   {.on_response =
                        [this, &asker](int status, const net::HttpHeaders& headers) {
                          OnHead(asker, status, headers);
                        },
                    .on_bytes = [this, &asker](ByteSpan bytes) { OnBytes(asker, bytes); },
                    .on_end =
                        [this, &asker](const Status& status) {
                          if (!status.ok()) return OnAnswer(asker, Error(status));
                          OnAnswer(asker, std::move(asker.response));
                        }});
}

void MultiEndpointRequest::OnHead(Asker& asker, int status, const net::HttpHeaders& headers) {
  asker.response = {.status = status, .headers = headers};
  if (!hooks_.begin) return;
  auto sink = hooks_.begin(asker.response);
  if (!sink) return OnAnswer(asker, Error(std::move(sink).error()));
  asker.sink = *std::move(sink);
  if (asker.sink != nullptr) Quiet(asker);
}

void MultiEndpointRequest::OnBytes(Asker& asker, ByteSpan bytes) {
  if (asker.sink != nullptr) {
    const Status written = asker.sink->Write(AsText(bytes));
    if (!written.ok()) OnAnswer(asker, Error(written));
    return;
  }
  if (asker.response.body.size() + bytes.size() > kAnswerBytesMax) {
    return OnAnswer(asker, Error(Code::kResourceExhausted, asker.url + ": too long an answer"));
  }
  asker.response.body += AsText(bytes);
}

void MultiEndpointRequest::Quiet(const Asker& asker) {
  for (const auto& other : askers_) {
    if (other.get() == &asker) continue;
    other->timer.Cancel();
    other->stream.reset();
    other->sink.reset();
  }
}

void MultiEndpointRequest::OnAnswer(Asker& asker, Result<net::HttpResponse> response) {
  asker.stream.reset();
  const bool alone = std::exchange(asker.sink, nullptr) != nullptr;
  const std::optional<Duration> again = hooks_.answer(asker.url, std::move(response));
  if (!again) {
    over_ = true;
    return Quiet(asker);
  }
  for (const auto& other : askers_) {
    if (other.get() != &asker && !alone) continue;
    const Duration least = other.get() == &asker ? *again : Duration::zero();
    other->timer = loop_.After(std::max(least, other->backoff.Next()),
                               [this, asked = other.get()] { Ask(*asked); });
  }
}

}  // namespace optcache::sidecar
