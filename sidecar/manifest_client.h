#pragma once

// A dataset's manifest, as nodes serve it (docs/kubernetes.md, "A node's manifest server").

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/backoff.h"
#include "base/result.h"
#include "net/event_loop.h"
#include "net/http_client.h"

namespace optcache::sidecar {

struct ManifestPlaces {
  std::vector<std::string> urls;  // "https://host:port", the nearest first
  std::string token_file;         // read for each request; empty: no token
  std::uint64_t seed = 0;         // of the retries' jitter, another one in each pod
};

// A request to one of the places. kInvalidArgument: the file holds no token.
Result<net::HttpRequest> MakeManifestRequest(const ManifestPlaces& places, std::string url);

// Asks for one dataset's manifest until it comes. Each place is asked on its own, later ones a
// moment after the first: a place that swallows packets holds up nothing. Used on the loop's
// thread only; the destructor ends the asking.
class ManifestFetch {
 public:
  struct Hooks {
    // What came. An error: these bytes are no manifest, and the asking goes on. May not destroy
    // the fetch.
    std::function<Status(std::string bytes)> take;
    // Why there is none yet, a sentence for people.
    std::function<void(const std::string& why)> explain;
  };
  // `dataset`: "namespace/name". `http` outlives this.
  ManifestFetch(net::EventLoop& loop, net::HttpClient& http, ManifestPlaces places,
                std::string dataset, Hooks hooks);
  ~ManifestFetch() { *alive_ = false; }
  ManifestFetch(const ManifestFetch&) = delete;
  ManifestFetch& operator=(const ManifestFetch&) = delete;

  bool done() const { return done_; }

 private:
  struct Asker {
    std::string url;
    Backoff backoff;
    net::Timer timer;
  };
  void Ask(Asker& asker);
  void OnAnswer(Asker& asker, Result<net::HttpResponse> response);
  void AskAgain(Asker& asker, Duration at_least);
  void Explain(const std::string& why, bool from_a_node);

  net::EventLoop& loop_;
  net::HttpClient& http_;
  ManifestPlaces places_;
  std::string dataset_;
  Hooks hooks_;
  std::vector<std::unique_ptr<Asker>> askers_;  // their addresses are held by timers
  std::string why_;
  bool a_node_answered_ = false;
  bool done_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for answers that come too late
};

}  // namespace optcache::sidecar
