#include "sidecar/manifests/manifest_upload.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "sidecar/manifests/multi_endpoint_request.h"

namespace optcache::sidecar {
namespace {

constexpr auto kUploadHeadStart = std::chrono::seconds(3);
constexpr ByteCount kUsualRate = 32_MiB;  // a second; who sends faster is not overtaken
constexpr BackoffOptions kUploadBackoff = {.first = std::chrono::milliseconds(500),
                                           .limit = std::chrono::seconds(15)};

// Refusals that stay the same however often one asks.
Code FinalRefusal(int status) {
  switch (status) {
    case 400:
      return Code::kInvalidArgument;
    case 403:
      return Code::kPermissionDenied;
    case 413:
      return Code::kResourceExhausted;
    default:
      return Code::kOk;
  }
}

}  // namespace

Status UploadManifest(net::EventLoop& loop, net::HttpClient& http, const ManifestPlaces& places,
                      const ManifestToUpload& manifest) {
  Status outcome(Code::kUnavailable, "no node answered");
  // Who would take it. A node may refuse it or have it, and its answer would be lost where much is
  // still being sent.
  std::set<std::string> takers;
  const auto request = [&](const std::string& url) -> Result<net::HttpRequest> {
    const std::string page =
        fmt::format("{}/v1/datasets/{}/manifests/{}", url, manifest.dataset, manifest.digest);
    if (!takers.contains(url)) {
      return MakeManifestRequest(places, fmt::format("{}?bytes={}", page, manifest.bytes.size()));
    }
    ASSIGN_OR_RETURN(net::HttpRequest put, MakeManifestRequest(places, page));
    put.method = "PUT";
    put.shared_body = manifest.bytes;
    return put;
  };
  const auto answer = [&](const std::string& url,
                          Result<net::HttpResponse> response) -> std::optional<Duration> {
    const bool offered = takers.erase(url) == 0;
    // 404: an earlier version's node, which knows no offers.
    if (response && offered && (response->status == 202 || response->status == 404)) {
      takers.insert(url);
      return Duration::zero();
    }
    if (response && (response->status == 200 || response->status == 201)) {
      outcome = OkStatus();
    } else if (response && FinalRefusal(response->status) != Code::kOk) {
      outcome = {FinalRefusal(response->status), SentenceOf(*response)};
    } else {
      const std::string why = response ? SentenceOf(*response) : response.error().message();
      outcome = {Code::kUnavailable, why};
      Log(LogLevel::kWarning, "a node did not take the manifest, trying on",
          {{"url", url}, {"why", why}});
      return response ? RetryAfter(*response) : Duration::zero();
    }
    loop.Stop();
    return std::nullopt;
  };
  const MultiEndpointRequest multi_request(
      loop, http,
      {.urls = places.urls,
       .head_start = kUploadHeadStart + std::chrono::seconds(manifest.bytes.size() / kUsualRate),
       .request_timeout = manifest.timeout,
       .backoff = kUploadBackoff,
       .seed = places.seed},
      {.request = request, .answer = answer});
  const net::Timer deadline = loop.After(manifest.timeout, [&loop] { loop.Stop(); });
  loop.Run();
  return outcome;
}

}  // namespace optcache::sidecar
