#pragma once

// A dataset's manifest, as nodes serve it (docs/kubernetes.md, "A node's manifest server").

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "sidecar/manifests/multi_endpoint_request.h"

namespace optcache::sidecar {

inline constexpr ByteCount kManifestBytesMax = 4_GiB;

struct ManifestPlaces {
  std::vector<std::string> urls;  // "https://host:port", the nearest first
  std::string token_file;         // read for each request; empty: no token
  std::uint64_t seed = 0;         // of the retries' jitter, another one in each pod
};

// kInvalidArgument: a token would go in plaintext. `node_ca` is what its receivers are known by.
Status CheckPlaces(const ManifestPlaces& places, const std::string& node_ca);

// A request to one of the places. kInvalidArgument: the file holds no token.
Result<net::HttpRequest> MakeManifestRequest(const ManifestPlaces& places, std::string url);

// A server's wish, within reason; zero if it has none.
Duration RetryAfter(const net::HttpResponse& response);
// What an answer that is no success says, as one line.
std::string SentenceOf(const net::HttpResponse& response);

// Asks for one dataset's manifest until it comes. Used on the loop's thread only; the destructor
// ends the asking.
class ManifestFetch {
 public:
  struct Hooks {
    // What came, a sealed memory file. An error: that is no manifest, and the asking goes on. May
    // not destroy the fetch.
    std::function<Status(UniqueFd manifest)> take;
    // Why there is none yet, a sentence for people.
    std::function<void(const std::string& why)> explain;
    // May be empty. Whether to take one of this size; if not, the asking ends.
    std::function<bool(ByteCount bytes)> wants = {};
  };
  // `dataset`: "namespace/name". `http` outlives this.
  ManifestFetch(net::EventLoop& loop, net::HttpClient& http, ManifestPlaces places,
                std::string dataset, Hooks hooks);

  bool done() const { return multi_request_.over(); }

 private:
  // What comes, as it comes.
  class Arriving;
  Result<std::shared_ptr<net::HttpBodySink>> Begin(const net::HttpResponse& head);
  std::optional<Duration> OnAnswer(const std::string& url, Result<net::HttpResponse> response);
  void Explain(const std::string& why, bool from_a_node);

  ManifestPlaces places_;
  std::string dataset_;
  Hooks hooks_;
  std::string why_;
  bool a_node_answered_ = false;
  bool unwanted_ = false;
  std::shared_ptr<Arriving> arriving_;
  MultiEndpointRequest multi_request_;
};

}  // namespace optcache::sidecar
