// optcache-node: holds samples in memory for the sidecars of its machine and for other nodes.

#include <iostream>
#include <string>

#include <CLI/CLI.hpp>

#include "base/files.h"
#include "base/log.h"
#include "cache-node/node.h"
#include "metrics/metrics_page.h"
#include "net/service_pages.h"
#include "net/stop_signals.h"

namespace optcache::node {
namespace {

struct Flags {
  NodeOptions node;
  std::string http = "127.0.0.1:0";
  std::string memory = "1Gi";
  bool json_log = false;
  bool debug = false;
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--name", flags.node.name, "This node's name, unlike that of any other")
      ->required();
  app.add_option("--listen", flags.node.listen, "HOST:PORT for sidecars and other nodes")
      ->required();
  app.add_option("--advertise", flags.node.advertise,
                 "HOST:PORT where other nodes reach this one; default: as it listens");
  app.add_option("--http", flags.http, "HOST:PORT for /metrics, /healthz and /readyz");
  app.add_option("--coordinator", flags.node.coordinator, "URL of the coordinator")->required();
  app.add_option("--memory", flags.memory, "Bytes of samples to hold, for example 64Gi");
  app.add_flag("--json-log", flags.json_log, "Log lines as JSON");
  app.add_flag("--debug", flags.debug, "Log more");
  app.footer(
      "Example:\n  optcache-node --name a --listen 127.0.0.1:4100 --http 127.0.0.1:4101 \\\n"
      "      --coordinator http://127.0.0.1:4000 --memory 8Gi\n"
      "What its numbers mean: docs/metrics.md");
}

net::HttpHandler Pages(const std::unique_ptr<Node>& node, const metrics::MetricsPage& page) {
  return net::Serve(
      {.metrics = [&page] { return page.Render(); }, .ready = [&node] { return node->Ready(); }});
}

Status Run(Flags flags) {
  ASSIGN_OR_RETURN(flags.node.memory, ParseQuantity(flags.memory));
  flags.node.incarnation = static_cast<std::uint64_t>(SystemClock().UnixSeconds() * 1e3);
  net::EventLoop loop;
  std::unique_ptr<Node> node;  // starts when its pages have their port; they are asked later
  metrics::MetricsPage page;
  page.Add([&node](const CounterVisitor& visitor) { node->VisitCounters(visitor); });
  ASSIGN_OR_RETURN(const std::unique_ptr<net::HttpServer> http,
                   net::ListenHttp(loop, flags.http, {}, Pages(node, page)));
  page.Add([&http](const CounterVisitor& visitor) { http->VisitCounters(visitor); });
  flags.node.http_port = http->port();
  ASSIGN_OR_RETURN(node, Node::Start(loop, SystemClock(), flags.node));

  const net::StopSignals signals(loop, [&] {
    Log(LogLevel::kInfo, "stopping");
    node->Stop([&loop] { loop.Stop(); });
  });
  Log(LogLevel::kInfo, "node started",
      {{"name", flags.node.name},
       {"address", node->address()},
       {"http", http->port()},
       {"memory", FormatBytes(flags.node.memory)}});
  loop.Run();
  return OkStatus();
}

}  // namespace
}  // namespace optcache::node

int main(int argc, char** argv) {
  CLI::App app("Holds training samples in memory where they are read next", "optcache-node");
  optcache::node::Flags flags;
  optcache::node::AddFlags(app, flags);
  CLI11_PARSE(app, argc, argv);
  optcache::SetUpLog("optcache-node",
                     flags.debug ? optcache::LogLevel::kDebug : optcache::LogLevel::kInfo,
                     flags.json_log ? optcache::LogFormat::kJson : optcache::LogFormat::kText);
  optcache::RaiseOpenFilesLimit();
  optcache::net::BlockStopSignals();
  if (const optcache::Status status = optcache::node::Run(std::move(flags)); !status.ok()) {
    std::cerr << "optcache-node: " << status.message() << "\n";
    return 1;
  }
  return 0;
}
