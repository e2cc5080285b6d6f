#include "sidecar/manifest_client.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "base/log.h"

namespace optcache::sidecar {
namespace {

constexpr auto kHeadStart = std::chrono::milliseconds(300);  // of each place before the next
constexpr auto kRequestTimeout = std::chrono::seconds(120);  // the whole manifest has come by then
constexpr BackoffOptions kBackoff = {.first = std::chrono::milliseconds(200),
                                     .limit = std::chrono::seconds(5)};
constexpr auto kRetryAfterMax = std::chrono::seconds(10);
constexpr std::size_t kSentenceMax = 512;

// What the server wants, within reason.
Duration RetryAfter(const net::HttpResponse& response) {
  const auto text = net::FindHeader(response.headers, "Retry-After");
  if (!text) return Duration::zero();
  unsigned seconds = 0;
  std::from_chars(text->data(), text->data() + text->size(), seconds);
  return std::min<Duration>(std::chrono::seconds(seconds), kRetryAfterMax);
}

// A node's sentence; it stands in a log and in a trainer's exception.
std::string Sentence(const net::HttpResponse& response) {
  std::string text = response.body.substr(0, kSentenceMax);
  std::ranges::replace_if(text, [](unsigned char c) { return c < ' ' || c > '~'; }, ' ');
  while (text.ends_with(' '))
    text.pop_back();
  return text.empty() ? fmt::format("HTTP status {}", response.status) : text;
}

}  // namespace

Result<net::HttpRequest> MakeManifestRequest(const ManifestPlaces& places, std::string url) {
  net::HttpRequest request{.url = std::move(url)};
  if (!places.token_file.empty()) {
    ASSIGN_OR_RETURN(const std::string token, ReadToken(places.token_file));
    request.headers.emplace_back("Authorization", "Bearer " + token);
  }
  return request;
}

ManifestFetch::ManifestFetch(net::EventLoop& loop, net::HttpClient& http, ManifestPlaces places,
                             std::string dataset, Hooks hooks)
    : loop_(loop),
      http_(http),
      places_(std::move(places)),
      dataset_(std::move(dataset)),
      hooks_(std::move(hooks)) {
  for (const std::string& url : places_.urls) {
    askers_.push_back(
        std::make_unique<Asker>(Asker{.url = url,
                                      .backoff = Backoff(kBackoff, places_.seed + askers_.size()),
                                      .timer = net::Timer()}));
    Asker& asker = *askers_.back();
    asker.timer = loop_.After(kHeadStart * (askers_.size() - 1), [this, &asker] { Ask(asker); });
  }
}

void ManifestFetch::Ask(Asker& asker) {
  if (done_) return;
  auto request =
      MakeManifestRequest(places_, fmt::format("{}/v1/datasets/{}/manifest", asker.url, dataset_));
  if (!request) {
    Explain(request.error().message(), false);
    return AskAgain(asker, Duration::zero());
  }
  http_.Send(*std::move(request), kRequestTimeout,
             [this, &asker, alive = alive_](Result<net::HttpResponse> response) {
               if (*alive) OnAnswer(asker, std::move(response));
             });
}

void ManifestFetch::OnAnswer(Asker& asker, Result<net::HttpResponse> response) {
  if (done_) return;
  if (!response) {
    Explain(response.error().message(), false);
    return AskAgain(asker, Duration::zero());
  }
  if (response->status != 200) {
    Explain(Sentence(*response), true);
    return AskAgain(asker, RetryAfter(*response));
  }
  if (const Status taken = hooks_.take(std::move(response->body)); !taken.ok()) {
    Explain(fmt::format("what {} sent is no manifest: {}", asker.url, taken.message()), true);
    return AskAgain(asker, Duration::zero());
  }
  done_ = true;
  for (const auto& other : askers_)
    other->timer.Cancel();
}

void ManifestFetch::AskAgain(Asker& asker, Duration at_least) {
  asker.timer =
      loop_.After(std::max(at_least, asker.backoff.Next()), [this, &asker] { Ask(asker); });
}

// What a node says tells more than that another one cannot be reached.
void ManifestFetch::Explain(const std::string& why, bool from_a_node) {
  if (a_node_answered_ && !from_a_node) return;
  a_node_answered_ = a_node_answered_ || from_a_node;
  if (why == why_) return;
  why_ = why;
  Log(LogLevel::kWarning, "no manifest yet, asking on", {{"dataset", dataset_}, {"why", why}});
  hooks_.explain(why);
}

}  // namespace optcache::sidecar
