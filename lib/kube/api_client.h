#pragma once

// The client over HTTP, and how a pod finds its API server.

#include <cstdint>
#include <memory>
#include <string>

#include "base/counters.h"
#include "base/result.h"
#include "kube/client.h"
#include "net/event_loop.h"
#include "net/http_client.h"

namespace optcache::kube {

// Where the API server is and who we are.
struct ApiAccess {
  std::string server;  // "https://10.96.0.1:443"
  // Whatever the address, the server's certificate must be for this name.
  std::string server_name = "kubernetes.default.svc";
  std::string ca_file;     // read again when it changes
  std::string token_file;  // read again every minute and when the server refuses the token
  std::string ns;          // our own namespace
  // Instead of a token, for tests.
  std::string certificate_file;
  std::string key_file;
};

// From the environment and files that Kubernetes gives to every pod with a ServiceAccount.
// `service_account_dir` is for tests.
Result<ApiAccess> InClusterAccess(
    const std::string& service_account_dir = "/var/run/secrets/kubernetes.io/serviceaccount");

struct ApiClientOptions {
  std::string user_agent = "optcache";
  Duration request_timeout = std::chrono::seconds(30);
  std::size_t max_in_flight = 32;
  // Requests beyond max_in_flight wait, their timeout running; more than that are refused with
  // kResourceExhausted.
  std::size_t max_waiting = 8192;
  Duration token_max_age = std::chrono::minutes(1);
  // Waits that the server asked for, a request.
  std::uint32_t max_retries = 10;
  std::uint64_t seed = 0;  // of the jitter
};

class ApiClient : public Client {
 public:
  // rest_client_* in docs/metrics.md.
  virtual void VisitCounters(const CounterVisitor& visitor) const = 0;
};

// With connections of its own: TLS with the CA and the name of `access`. `loop` and `clock` outlive
// it.
std::unique_ptr<ApiClient> MakeApiClient(net::EventLoop& loop, const Clock& clock,
                                         const ApiAccess& access, ApiClientOptions options = {});

// Over `http`, which outlives it, too.
std::unique_ptr<ApiClient> MakeApiClient(net::EventLoop& loop, const Clock& clock,
                                         net::HttpClient& http, const ApiAccess& access,
                                         ApiClientOptions options = {});

}  // namespace optcache::kube
