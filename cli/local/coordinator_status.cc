#include "cli/local/coordinator_status.h"

#include <memory>
#include <optional>
#include <utility>

#include "coordination/state.h"
#include "dataset/manifest.h"
#include "net/address.h"
#include "net/http_client.h"

namespace optcache::cli {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(5);
constexpr Duration kManifestTimeout = std::chrono::minutes(2);

Result<std::string> Fetch(const std::string& url, const std::string& path, Duration timeout,
                          ByteCount max_bytes) {
  net::EventLoop loop;
  const std::unique_ptr<net::HttpClient> client =
      net::MakeHttpClient(loop, {.max_body_bytes = max_bytes, .unix_socket = net::UnixPathOf(url)});
  std::optional<Result<net::HttpResponse>> answer;
  client->Send({.url = url + path}, timeout, [&](Result<net::HttpResponse> response) {
    answer = std::move(response);
    loop.Stop();
  });
  loop.Run();
  if (!*answer && answer->error().code() == Code::kPermissionDenied) {
    return Error(Code::kPermissionDenied, "the coordinator at " + url +
                                              " is another user's: it answers that user and root "
                                              "alone");
  }
  if (!*answer) {
    return Error(
        std::move(*answer).error().WithContext("the coordinator at " + url + " does not answer"));
  }
  if ((*answer)->status == 404 && net::UnixPathOf(url).empty()) {
    return Error(Code::kUnavailable,
                 url +
                     " answers with status 404: an `optcache up` answers at a socket, and not at "
                     "the port of its pages. Leave out --coordinator and OPTCACHE_COORDINATOR to "
                     "find it by --state, or name unix:STATE/run/coordinator.sock");
  }
  if ((*answer)->status != 200) {
    return Error(Code::kUnavailable, url + " answers with status " +
                                         std::to_string((*answer)->status) +
                                         ": is it a coordinator of optcache?");
  }
  return std::move((*answer)->body);
}

}  // namespace

Result<CoordinatorAnswer> AskCoordinator(const std::string& url) {
  ASSIGN_OR_RETURN(std::string json,
                   Fetch(url, "/v1/status", kTimeout, coordination::kMaxStateBytes));
  Result<coordination::ClusterStatus> status = coordination::ParseClusterStatus(json);
  if (!status) {
    return Error(Code::kUnavailable,
                 "the coordinator at " + url + " answers badly: " + status.error().message());
  }
  return CoordinatorAnswer{.status = *std::move(status), .json = std::move(json)};
}

Result<std::string> FetchManifest(const std::string& url, const std::string& digest) {
  return Fetch(url, "/v1/manifests/" + digest, kManifestTimeout, dataset::kManifestBytesMax);
}

std::vector<std::string> SidecarUrls(const coordination::ClusterStatus& status) {
  std::vector<std::string> urls;
  for (const coordination::SidecarStatus& sidecar : status.sidecars) {
    if (!sidecar.metrics.empty()) urls.push_back(sidecar.metrics);
  }
  return urls;
}

}  // namespace optcache::cli
