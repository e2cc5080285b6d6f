#include <cstdlib>
#include <utility>

#include "base/files.h"
#include "kube/api_client.h"
#include "net/tls_files.h"

namespace optcache::kube {
namespace {

constexpr ByteCount kMaxNamespaceBytes = 253;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return value == nullptr ? "" : value;
}

// The client over connections that are its own.
class ConnectedApiClient final : public ApiClient {
 public:
  ConnectedApiClient(net::EventLoop& loop, const Clock& clock, const ApiAccess& access,
                     ApiClientOptions options)
      : tls_(std::make_shared<net::TlsContext>(net::TlsRole::kClient)),
        files_(loop,
               {.chain = access.certificate_file, .key = access.key_file, .trust = access.ca_file},
               tls_),
        http_(net::MakeHttpClient(loop, {.tls = tls_, .server_name = access.server_name})),
        client_(MakeApiClient(loop, clock, *http_, access, std::move(options))) {}

  void Call(ApiRequest request, ObjectCallback callback) override {
    client_->Call(std::move(request), std::move(callback));
  }
  std::unique_ptr<WatchHandle> Watch(WatchRequest request, WatchCallbacks callbacks) override {
    return client_->Watch(std::move(request), std::move(callbacks));
  }
  void VisitCounters(const CounterVisitor& visitor) const override {
    client_->VisitCounters(visitor);
  }

 private:
  const std::shared_ptr<net::TlsContext> tls_;  // shared by its files and the connections
  net::TlsFiles files_;
  const std::unique_ptr<net::HttpClient> http_;
  const std::unique_ptr<ApiClient> client_;
};

}  // namespace

Result<ApiAccess> InClusterAccess(const std::string& service_account_dir) {
  std::string host = Environment("KUBERNETES_SERVICE_HOST");
  const std::string port = Environment("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return Error(Code::kInvalidArgument,
                 "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this is no pod "
                 "of a Kubernetes cluster");
  }
  if (host.find(':') != std::string::npos) host = "[" + host + "]";  // IPv6
  auto ns = ReadFile(service_account_dir + "/namespace", kMaxNamespaceBytes);
  if (!ns) return Error(std::move(ns).error().WithContext("own namespace"));
  return ApiAccess{.server = "https://" + host + ":" + port,
                   .ca_file = service_account_dir + "/ca.crt",
                   .token_file = service_account_dir + "/token",
                   .ns = *std::move(ns)};
}

std::unique_ptr<ApiClient> MakeApiClient(net::EventLoop& loop, const Clock& clock,
                                         const ApiAccess& access, ApiClientOptions options) {
  return std::make_unique<ConnectedApiClient>(loop, clock, access, std::move(options));
}

}  // namespace optcache::kube
