#include "cache-node/control/control_http.h"

#include <utility>

namespace optcache::node {
namespace {

constexpr int kHopsMax = 3;  // replicas that disagree on who leads end in the caller's backoff
constexpr std::string_view kHttps = "https://";

}  // namespace

void ControlHttp::Send(net::HttpRequest request, Duration timeout, net::HttpCallback callback) {
  SendTo(server(), std::move(request), timeout, 0, std::move(callback));
}

void ControlHttp::SendTo(const std::string& server, net::HttpRequest request, Duration timeout,
                         int hops, net::HttpCallback callback) {
  net::HttpRequest there = request;
  there.url = server + request.url;
  http_.Send(
      std::move(there), timeout,
      guard_.Wrap([this, request = std::move(request), timeout, hops,
                   callback = std::move(callback)](Result<net::HttpResponse> response) mutable {
        const std::string leader = response ? RedirectOf(*response) : "";
        if (!leader.empty() && hops < kHopsMax) {
          leader_ = leader;
          return SendTo(leader, std::move(request), timeout, hops + 1, std::move(callback));
        }
        if (!response || response->status == 307 || response->status == 503) leader_.clear();
        callback(std::move(response));
      }));
}

// "https://host:port" of a redirect that may be followed; else empty.
std::string ControlHttp::RedirectOf(const net::HttpResponse& response) const {
  if (response.status != 307 || !https_) return "";
  const std::string_view location = net::FindHeader(response.headers, "Location").value_or("");
  if (!location.starts_with(kHttps)) return "";
  const std::size_t path = location.find('/', kHttps.size());
  return std::string(location.substr(0, path));
}

}  // namespace optcache::node
