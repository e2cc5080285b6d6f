// Fetches a dataset's manifest from the first node that has it.
//
// The places are asked, each with a head start before the next, until one gives it
// (MultiEndpointRequest). The head of an answer has the length: by it a manifest that is too large,
// or not wanted, is refused before its bytes come. They go into a memory file, which is sealed once
// all have come.

#include "sidecar/manifests/manifest_client.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "base/log.h"
#include "base/whole_number.h"
#include "handoff/memory_file.h"

namespace optcache::sidecar {
namespace {

constexpr auto kHeadStart = std::chrono::milliseconds(300);  // of each place before the next
constexpr auto kRequestTimeout = std::chrono::seconds(30);   // the manifest begins to come by then
constexpr BackoffOptions kBackoff = {.first = std::chrono::milliseconds(200),
                                     .limit = std::chrono::seconds(5)};
constexpr auto kRetryAfterMax = std::chrono::seconds(10);
constexpr std::size_t kSentenceMax = 512;

}  // namespace

Duration RetryAfter(const net::HttpResponse& response) {
  const auto text = net::FindHeader(response.headers, "Retry-After").value_or("");
  const std::chrono::seconds told(ParseWholeNumber<std::uint32_t>(text).value_or(0));
  return std::min<Duration>(told, kRetryAfterMax);
}

// It stands in a log and in a trainer's exception.
std::string SentenceOf(const net::HttpResponse& response) {
  std::string text = response.body.substr(0, kSentenceMax);
  std::ranges::replace_if(text, [](unsigned char c) { return c < ' ' || c > '~'; }, ' ');
  while (text.ends_with(' '))
    text.pop_back();
  return text.empty() ? fmt::format("HTTP status {}", response.status) : text;
}

Status CheckPlaces(const ManifestPlaces& places, const std::string& node_ca) {
  if (!places.token_file.empty() && node_ca.empty()) {
    return {Code::kInvalidArgument,
            "--token-file needs --node-ca: the token is sent to nodes with a certificate alone"};
  }
  for (const std::string& url : places.urls) {
    if (!url.starts_with("http://") && !url.starts_with("https://")) {
      return {Code::kInvalidArgument, "--manifests " + url + " is not a URL"};
    }
    if (!node_ca.empty() && !url.starts_with("https://")) {
      return {Code::kInvalidArgument, "--manifests " + url + ": with --node-ca only by https://"};
    }
  }
  return OkStatus();
}

Result<net::HttpRequest> MakeManifestRequest(const ManifestPlaces& places, std::string url) {
  net::HttpRequest request{.url = std::move(url)};
  if (!places.token_file.empty()) {
    ASSIGN_OR_RETURN(const std::string token, ReadToken(places.token_file));
    request.headers.emplace_back("Authorization", "Bearer " + token);
  }
  return request;
}

// Written to a memory file, of which clients get the descriptor.
class ManifestFetch::Arriving final : public net::HttpBodySink {
 public:
  Arriving(UniqueFd file, ByteCount bytes) : file_(std::move(file)), left_(bytes) {}

  Status Write(std::string_view bytes) override {
    if (bytes.size() > left_) return {Code::kDataLoss, "more came than was said"};
    left_ -= bytes.size();
    return WriteAll(file_.get(), bytes, "the memory file of a manifest");
  }
  Result<UniqueFd> Finish() {
    if (left_ > 0) return Error(Code::kDataLoss, fmt::format("{} bytes are missing", left_));
    RETURN_IF_ERROR(handoff::Seal(file_));
    return std::move(file_);
  }

 private:
  UniqueFd file_;
  ByteCount left_;
};

ManifestFetch::ManifestFetch(net::EventLoop& loop, net::HttpClient& http, ManifestPlaces places,
                             std::string dataset, Hooks hooks)
    : places_(std::move(places)),
      dataset_(std::move(dataset)),
      hooks_(std::move(hooks)),
      multi_request_(loop, http,
                     {.urls = places_.urls,
                      .head_start = kHeadStart,
                      .request_timeout = kRequestTimeout,
                      .backoff = kBackoff,
                      .seed = places_.seed},
                     {.request =
                          [this](const std::string& url) {
                            return MakeManifestRequest(
                                places_, fmt::format("{}/v1/datasets/{}/manifest", url, dataset_));
                          },
                      .answer =
                          [this](const std::string& url, Result<net::HttpResponse> response) {
                            return OnAnswer(url, std::move(response));
                          },
                      .begin = [this](const net::HttpResponse& head) { return Begin(head); }}) {}

Result<std::shared_ptr<net::HttpBodySink>> ManifestFetch::Begin(const net::HttpResponse& head) {
  if (head.status != 200) return nullptr;
  const std::optional<ByteCount> length = net::ContentLength(head.headers);
  if (!length) return Error(Code::kDataLoss, "the manifest comes without a length");
  if (*length > kManifestBytesMax) {
    return Error(Code::kResourceExhausted,
                 fmt::format("the manifest has {}, a sidecar takes {}", FormatBytes(*length),
                             FormatBytes(kManifestBytesMax)));
  }
  if (hooks_.wants && !hooks_.wants(*length)) {
    unwanted_ = true;
    return Error(Code::kResourceExhausted, "a manifest of this size is not wanted");
  }
  ASSIGN_OR_RETURN(UniqueFd file, handoff::MakeMemoryFile("optcache-manifest", *length));
  arriving_ = std::make_shared<Arriving>(std::move(file), *length);
  return arriving_;
}

std::optional<Duration> ManifestFetch::OnAnswer(const std::string& url,
                                                Result<net::HttpResponse> response) {
  const auto arrived = std::exchange(arriving_, nullptr);
  if (unwanted_) return std::nullopt;
  if (!response) {
    Explain(response.error().message(), false);
    return Duration::zero();
  }
  if (response->status != 200) {
    Explain(SentenceOf(*response), true);
    return RetryAfter(*response);
  }
  auto manifest = arrived->Finish();
  const Status taken = manifest ? hooks_.take(*std::move(manifest)) : manifest.error();
  if (taken.ok()) return std::nullopt;
  Explain(fmt::format("what {} sent is no manifest: {}", url, taken.message()), true);
  return Duration::zero();
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
