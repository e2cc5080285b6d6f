#pragma once

// Requests to the coordinator, which may be one of several replicas: the one that does not lead
// names the one that does.

#include <string>

#include "base/callback_guard.h"
#include "base/clock.h"
#include "net/http_client.h"

namespace optcache::node {

// Used on the loop's thread only.
class ControlHttp {
 public:
  // `base`: "https://host:port" or "http://host:port". `http` outlives this. It checks the server's
  // name, so that wherever a replica sends us, there is another replica.
  ControlHttp(net::HttpClient& http, std::string base)
      : http_(http), base_(std::move(base)), https_(base_.starts_with("https://")) {}

  // `request.url` is a path with its query. As HttpClient::Send; a 307 to https is followed, if the
  // base is https, too, and remembered until the leader cannot be reached or leads no more. Not
  // after this has died.
  void Send(net::HttpRequest request, Duration timeout, net::HttpCallback callback);

  // Where the latest answer came from, for people.
  const std::string& server() const { return leader_.empty() ? base_ : leader_; }

 private:
  void SendTo(const std::string& server, net::HttpRequest request, Duration timeout, int hops,
              net::HttpCallback callback);
  std::string RedirectOf(const net::HttpResponse& response) const;

  net::HttpClient& http_;
  std::string base_;
  bool https_;
  std::string leader_;   // empty: ask at the base
  CallbackGuard guard_;  // last
};

}  // namespace optcache::node
