// optcache-node: holds samples in memory for the sidecars of its machine and for other nodes.

#include <cstdint>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>

#include "base/files.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cache-node/node.h"
#include "metrics/metrics_page.h"
#include "net/address.h"
#include "net/service_pages.h"
#include "net/stop_signals.h"

namespace optcache::node {
namespace {

struct Flags {
  NodeOptions node;
  std::string http = "127.0.0.1:0";
  std::string memory = "1Gi";
  std::string disk_capacity;
  std::string namespace_bytes;
  std::string state_size = "8Gi";
  int drain_seconds = 0;
  bool json_log = false;
  bool debug = false;
};

// The meaning of each in a cluster: cache-node/README.md.
void AddClusterFlags(CLI::App& app, Flags& flags) {
  ClusterOptions& cluster = flags.node.cluster;
  const auto file = [&app](const char* name, std::string& value, const char* text) {
    app.add_option(name, value, text)->type_name("FILE")->group("In a cluster");
  };
  const auto option = [&app](const char* name, auto& value, const char* text) {
    app.add_option(name, value, text)->group("In a cluster")->capture_default_str();
  };
  file("--ca", cluster.ca_file,
       "CA bundle. With it, both sides use TLS with certificates on all ports but "
       "--metrics-address");
  file("--token-file", cluster.token_file,
       "Token of this pod, with which it asks for its certificate");
  file("--api-ca", cluster.api_ca_file,
       "CA certificates that sign the certificate of the API server");
  file("--api-token-file", cluster.api_token_file, "Token for the API server");
  option("--api-server", cluster.api_server,
         "URL of the API server, if the environment does not have it");
  option("--state-dir", cluster.state_dir, "Folder for the key, the state and manifests");
  option("--state-size", flags.state_size, "Size of the volume of that folder");
  option("--max-manifest-samples", cluster.manifest_samples_max,
         "Most samples in a manifest that a pod sends; 0 for any number");
  option("--manifests", cluster.manifests, "HOST:PORT for manifests");
  option("--machine", cluster.machine, "Name of this machine; pods of other machines are refused");
  option("--namespace-streams", cluster.limits.streams,
         "Most streams that one namespace may have here");
  option("--namespace-bytes", flags.namespace_bytes,
         "Most bytes that are on their way to one namespace");
  app.add_flag("--encrypt-samples", cluster.encrypt_samples,
               "Use TLS for samples, too. By default, samples for pods of this machine are sent in "
               "plaintext")
      ->group("In a cluster");
}

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--name", flags.node.name, "Name of this node; no other node may have it")
      ->required();
  app.add_option("--listen", flags.node.listen,
                 "HOST:PORT for sidecars and other nodes, or unix:PATH, which only processes of "
                 "this user can reach")
      ->required();
  app.add_option(
      "--advertise", flags.node.advertise,
      "HOST:PORT or IP at which other nodes reach this one; by default the address of --listen");
  app.add_option("--metrics-address", flags.http, "HOST:PORT for /metrics, /healthz and /readyz");
  app.add_option("--coordinator", flags.node.coordinator, "URL of the coordinator, or unix:PATH")
      ->required();
  app.add_option("--memory", flags.memory, "Bytes of samples to hold, for example 64Gi");
  CLI::Option* const disk = app.add_option(
      "--disk", flags.node.disk, "Folder on a local disk for samples that memory has no room for");
  CLI::Option* const disk_capacity =
      app.add_option("--disk-capacity", flags.disk_capacity,
                     "Most bytes of files in that folder, for example 500Gi");
  disk->needs(disk_capacity);
  disk_capacity->needs(disk);
  app.add_flag(
         "--disk-goes",
         [&flags](std::int64_t) { flags.node.disk_at_end = RetentionManager::OnDisk::kGoes; },
         "The folder of --disk does not outlive this node. On shutdown, samples in it are moved to "
         "other nodes, too")
      ->needs(disk);
  app.add_option("--drain-seconds", flags.drain_seconds,
                 "On shutdown, spend at most this many seconds moving cached samples to other "
                 "nodes")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  AddClusterFlags(app, flags);
  app.add_flag("--json-log", flags.json_log, "Write log lines as JSON");
  app.add_flag("--debug", flags.debug, "Log details, for debugging");
  app.footer(
      "Example:\n  optcache-node --name a --listen unix:$HOME/run/a.sock --metrics-address "
      "127.0.0.1:4101 "
      "\\\n      --coordinator unix:$HOME/run/coordinator.sock --memory 8Gi\ndocs/metrics.md "
      "explains the metrics.");
}

net::HttpHandler Pages(const std::unique_ptr<Node>& node, const metrics::MetricsPage& page) {
  return net::Serve(
      {.metrics = [&page] { return page.Render(); }, .ready = [&node] { return node->Ready(); }});
}

Status Run(Flags flags) {
  ASSIGN_OR_RETURN(flags.node.memory, ParseQuantity(flags.memory));
  if (!flags.disk_capacity.empty()) {
    ASSIGN_OR_RETURN(flags.node.disk_capacity, ParseQuantity(flags.disk_capacity));
  }
  ASSIGN_OR_RETURN(flags.node.cluster.state_size, ParseQuantity(flags.state_size));
  flags.node.drain = std::chrono::seconds(flags.drain_seconds);
  flags.node.cluster.limits.queued_bytes = flags.node.memory / 4;
  if (!flags.namespace_bytes.empty()) {
    ASSIGN_OR_RETURN(flags.node.cluster.limits.queued_bytes, ParseQuantity(flags.namespace_bytes));
  }
  flags.node.incarnation = static_cast<std::uint64_t>(SystemClock().UnixSeconds() * 1e3);
  net::EventLoop loop;
  std::unique_ptr<Node> node;  // starts when its pages have their port; they are asked later
  metrics::MetricsPage page;
  page.Add([&node](const CounterVisitor& visitor) { node->VisitCounters(visitor); });
  ASSIGN_OR_RETURN(const std::unique_ptr<net::HttpServer> http,
                   net::ListenHttp(loop, flags.http, {}, Pages(node, page)));
  page.Add([&http](const CounterVisitor& visitor) { http->VisitCounters(visitor); });
  flags.node.http_port = http->port();
  ASSIGN_OR_RETURN(const net::Address pages, net::ParseAddress(flags.http));
  flags.node.http_host = pages.host == net::kEverywhere ? "127.0.0.1" : pages.host;
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
  CLI::App app("Keep training samples in the memory of the machine that reads them next",
               "optcache-node");
  optcache::node::Flags flags;
  optcache::node::AddFlags(app, flags);
  CLI11_PARSE(app, argc, argv);
  optcache::SetUpLog("optcache-node",
                     flags.debug ? optcache::LogLevel::kDebug : optcache::LogLevel::kInfo,
                     flags.json_log ? optcache::LogFormat::kJson : optcache::LogFormat::kText);
  optcache::RaiseOpenFilesLimit();
  optcache::net::BlockStopSignals();
  if (const optcache::Status status = optcache::node::Run(std::move(flags)); !status.ok()) {
    std::cerr << "optcache-node: " << optcache::Visible(status.message(), "\n") << "\n";
    return 1;
  }
  return 0;
}
