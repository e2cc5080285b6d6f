// webhook_test_server: the injector over HTTPS with the Datasets of support/fake_datasets.h. Says
// its port on standard output, and ends when its standard input does.

#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "net/event_loop.h"
#include "net/http_server.h"
#include "net/tls.h"
#include "operator/webhook/server.h"
#include "support/fake_datasets.h"

namespace optcache::webhook {
namespace {

constexpr ByteCount kMaxPemBytes = 64_KiB;

struct Flags {
  std::string chain;
  std::string key;
  bool legacy = false;
};

Status Run(const Flags& flags) {
  net::TlsMaterial material;
  ASSIGN_OR_RETURN(material.chain, ReadFile(flags.chain, kMaxPemBytes));
  ASSIGN_OR_RETURN(material.key, ReadFile(flags.key, kMaxPemBytes));
  const auto tls = std::make_shared<net::TlsContext>(net::TlsRole::kServer);
  RETURN_IF_ERROR(tls->Replace(std::move(material)));

  const FakeDatasets datasets = FakeDatasets::OfCorpus();
  Webhook webhook(SystemClock(),
                  {.version = "0.1.0",
                   .sidecar_image = "optcache/sidecar:0.1.0",
                   .ordinary_sidecars = flags.legacy},
                  datasets);
  net::EventLoop loop;
  net::HttpServerOptions options = WebhookHttpOptions();
  options.tls = tls;
  ASSIGN_OR_RETURN(const std::unique_ptr<net::HttpServer> server,
                   net::ListenHttp(loop, "127.0.0.1:0", options, webhook.Handler()));
  std::cout << server->port() << std::endl;
  const net::Watch input = loop.WatchReadable(STDIN_FILENO, [&loop] { loop.Stop(); });
  loop.Run();
  return OkStatus();
}

}  // namespace
}  // namespace optcache::webhook

int main(int argc, char** argv) {
  CLI::App app("The injector, for tests", "webhook_test_server");
  optcache::webhook::Flags flags;
  app.add_option("--chain", flags.chain, "Its certificate")->required();
  app.add_option("--key", flags.key, "The certificate's key")->required();
  app.add_flag("--legacy", flags.legacy, "As before Kubernetes 1.29");
  CLI11_PARSE(app, argc, argv);
  optcache::SetUpLog("webhook_test_server", optcache::LogLevel::kError, optcache::LogFormat::kText);
  if (const optcache::Status status = optcache::webhook::Run(flags); !status.ok()) {
    std::cerr << "webhook_test_server: " << status.message() << "\n";
    return 1;
  }
  return 0;
}
