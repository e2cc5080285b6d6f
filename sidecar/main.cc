// optcache-sidecar: hands training processes their samples before they ask.

#include <csignal>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/files.h"
#include "base/log.h"
#include "handoff/socket.h"
#include "metrics/metrics_page.h"
#include "net/service_pages.h"
#include "net/stop_signals.h"
#include "sidecar/agent.h"
#include "sidecar/exit_watch.h"
#include "sidecar/index_verb.h"
#include "sidecar/python_copy.h"

namespace optcache::sidecar {
namespace {

// A sidecar that does not come so far has ended or will not: its pod trains without it.
constexpr Duration kAwaitWatchAtMost = std::chrono::seconds(30);

struct Flags {
  AgentOptions agent;
  IndexFlags index;
  std::string python;
  std::string python_package = "/usr/share/optcache/python/optcache";
  ExitWatch::Options exit;
  std::string probe;
  std::string await_watch;
  std::string http = "127.0.0.1:0";
  std::string arena = "1Gi";
  std::string computed = "0";
  std::string overflow = "256Mi";
  std::vector<std::string> datasets;
  std::vector<std::string> keys;
  bool json_log = false;
  bool debug = false;
};

// Whether the command line is that of a sidecar, and not of one of the other things.
enum class Serves { kNo, kYes };

void AddFlags(CLI::App& app, Flags& flags, Serves serves) {
  AgentOptions& agent = flags.agent;
  const bool required = serves == Serves::kYes;
  app.add_option("--name", agent.name, "This sidecar's name, for logs")->required(required);
  app.add_option("--socket", agent.socket, "Path of the socket for training processes")
      ->required(required);
  app.add_option("--node", agent.node, "HOST:PORT of this machine's optcache-node")
      ->required(required);
  app.add_option(
         "--dataset", flags.datasets,
         "NAME=MANIFEST_FILE=STORE_URI of a dataset to serve, or NAME==STORE_URI if the nodes "
         "have its manifest; may be given several times")
      ->required(required);
  app.add_option(
         "--keys", flags.keys,
         "NAME=DIR: token, or username and password, and perhaps ca.crt, each a file in DIR, "
         "for the web server of that dataset; read again when they change")
      ->type_name("NAME=DIR");
  app.add_option("--manifests", agent.manifests,
                 "URL of a node that serves manifests; may be given several times, nearest first");
  app.add_option("--manifest-dir", agent.manifest_dir,
                 "Keep the manifests that nodes gave here, for the next start")
      ->type_name("DIR");
  app.add_option("--token-file", agent.token_file,
                 "Token that tells nodes who this is; read again for each connection")
      ->type_name("FILE");
  app.add_option("--node-ca", agent.node_ca,
                 "Certificates that sign nodes'; read again when they change. Without: no TLS")
      ->type_name("FILE");
  app.add_flag("--tls-throughout", agent.tls_throughout,
               "Samples by TLS, too, and not in plaintext to the node of the same machine");
  app.add_option("--arena", flags.arena,
                 "Bytes of shared memory: what the trainers hold, and as much again ahead of them")
      ->capture_default_str();
  app.add_option("--overflow", flags.overflow,
                 "Bytes beside the arena for samples that do not fit it, answered by copy")
      ->capture_default_str();
  app.add_option("--computed", flags.computed,
                 "Bytes of shared memory for computed samples (optcache.cached); 0: none are kept")
      ->capture_default_str();
  app.add_option("--store-concurrency", agent.feeder.fetch.store_concurrency,
                 "Store reads at a time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--ca-file", agent.ca_file,
                 "Certificates to trust instead of the system's, for https")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  agent.feeder.readers.several_jobs = true;
  app.add_option("--owner", agent.feeder.readers.owner,
                 "Name of the job, the same in all its pods; without it, any jobs may attach")
      ->each([&agent](const std::string& /*owner*/) { agent.feeder.readers.several_jobs = false; })
      ->envname("OPTCACHE_OWNER")
      ->capture_default_str();
  app.add_option("--incarnation", agent.feeder.readers.incarnation,
                 "Counts the job's restarts, the same in all its pods")
      ->envname("OPTCACHE_INCARNATION")
      ->capture_default_str();
  app.add_option("--namespace", agent.feeder.readers.name_space,
                 "Kubernetes namespace of the job; default: that of each dataset")
      ->envname("POD_NAMESPACE");
  app.add_option("--http", flags.http, "HOST:PORT for /metrics, /healthz and /readyz")
      ->capture_default_str();
  app.add_option("--python", flags.python,
                 "Put the Python package here, for the PYTHONPATH of training processes")
      ->type_name("DIR");
  app.add_option("--python-package", flags.python_package, "Where that package is")
      ->capture_default_str()
      ->type_name("DIR");
  app.add_option("--exit-file", flags.exit.file,
                 "End by itself when this appears, or when all training processes have ended")
      ->type_name("FILE");
  app.add_flag("--shared-processes", flags.exit.shared_processes,
               "The pod's containers share theirs: these tell when that is; else clients do");
  app.add_option_function<int>(
         "--exit-after",
         [&flags](int seconds) { flags.exit.linger = std::chrono::seconds(seconds); },
         "Seconds without training processes after which they have ended; default: 180")
      ->check(CLI::Range(0, 24 * 3600))
      ->type_name("SECONDS");
  app.add_option("--probe", flags.probe, "Only says by its exit status whether somebody listens")
      ->type_name("SOCKET");
  app.add_option("--await-watch", flags.await_watch,
                 "Only waits until the sidecar with this --exit-file watches, 30 seconds at most")
      ->type_name("FILE");
  app.add_flag("--json-log", flags.json_log, "Log lines as JSON");
  app.add_flag("--debug", flags.debug, "Log more");
  app.footer(
      "Example:\n  optcache-sidecar --name trainer-0 --socket /run/optcache/sock \\\n"
      "      --node 127.0.0.1:4100 --arena 1Gi \\\n"
      "      --dataset images=/var/lib/optcache/images.manifest=https://store/images/\n"
      "Manifests are made by `optcache manifest`. What its numbers mean: docs/metrics.md");
}

void AddIndexFlags(CLI::App& app, IndexFlags& flags) {
  CLI::App* verb = app.add_subcommand(
      "index", "Makes a dataset's manifest and gives it to the nodes; for the operator's Jobs");
  verb->add_option("--dataset", flags.dataset, "NAMESPACE/NAME")->required();
  verb->add_option("--source", flags.source, "Folder or URL where the objects are")->required();
  verb->add_option("--listing", flags.store.listing, "The file by which a web server lists them")
      ->capture_default_str();
  verb->add_option("--ca-file", flags.store.ca_file,
                   "Certificates to trust instead of the system's, for sources by https");
  verb->add_option("--keys", flags.store.keys_folder,
                   "Token, or username and password, and perhaps ca.crt, each a file in DIR, for a "
                   "web server")
      ->type_name("DIR");
  verb->add_option("--include", flags.include, "GLOB of what is a sample; may be given again");
  verb->add_option("--order", flags.order, "Path, List or ImageFolder");
  verb->add_option("--verify", flags.verify, "Checksum, or Digest: read everything once")
      ->capture_default_str();
  verb->add_option("--manifests", flags.manifests, "URL of a node; may be given again")->required();
  verb->add_option("--token-file", flags.token_file, "Token that tells nodes who this is");
  verb->add_option("--node-ca", flags.node_ca, "Certificates that sign nodes'");
  verb->add_option("--parallel", flags.store.concurrent_reads_max, "Requests at a time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  verb->add_option("--timeout", flags.timeout_s, "Seconds for all of it")
      ->check(CLI::Range(1, 7 * 24 * 3600))
      ->capture_default_str();
  verb->add_option("--termination-file", flags.termination_file,
                   "Gets a line of JSON: what came out, or why nothing did")
      ->capture_default_str();
}

// Ready with or without a node: samples are served.
net::HttpHandler Pages(const metrics::MetricsPage& page) {
  return net::Serve({.metrics = [&page] { return page.Render(); }, .ready = OkStatus});
}

Status Run(Flags flags) {
  ASSIGN_OR_RETURN(flags.agent.arena_bytes, ParseQuantity(flags.arena));
  ASSIGN_OR_RETURN(flags.agent.feeder.overflow_bytes, ParseQuantity(flags.overflow));
  ASSIGN_OR_RETURN(flags.agent.computed_bytes, ParseQuantity(flags.computed));
  for (const std::string& text : flags.datasets) {
    ASSIGN_OR_RETURN(DatasetSource source, ParseDatasetSource(text));
    flags.agent.datasets.push_back(std::move(source));
  }
  for (const std::string& text : flags.keys)
    RETURN_IF_ERROR(AddKeys(text, flags.agent.datasets));
  if (!flags.python.empty()) {
    RETURN_IF_ERROR(CopyPythonPackage(flags.python_package, flags.python));
  }
  const std::string name = flags.agent.name;
  const std::string socket = flags.agent.socket;
  net::EventLoop loop;
  ASSIGN_OR_RETURN(const std::unique_ptr<Agent> agent,
                   Agent::Start(loop, SystemClock(), std::move(flags.agent)));
  metrics::MetricsPage page;
  page.Add([&agent](const CounterVisitor& visitor) { agent->VisitCounters(visitor); });
  ASSIGN_OR_RETURN(const std::unique_ptr<net::HttpServer> http,
                   net::ListenHttp(loop, flags.http, {}, Pages(page)));
  page.Add([&http](const CounterVisitor& visitor) { http->VisitCounters(visitor); });

  const auto stop = [&] {
    Log(LogLevel::kInfo, "stopping");
    agent->Stop([&loop] { loop.Stop(); });
  };
  const net::StopSignals signals(loop, stop);
  std::optional<ExitWatch> exit_watch;
  if (!flags.exit.file.empty()) {
    exit_watch.emplace(
        loop, SystemClock(), flags.exit, [&agent] { return agent->clients(); }, stop);
  }
  Log(LogLevel::kInfo, "sidecar started",
      {{"name", name}, {"socket", socket}, {"http", http->port()}});
  loop.Run();
  return OkStatus();
}

Status RunWhatIsAsked(const CLI::App& app, Flags flags) {
  if (app.got_subcommand("index")) {
    std::signal(SIGPIPE, SIG_IGN);  // a peer that has gone is an error of the write
    return RunIndex(flags.index);
  }
  if (!flags.probe.empty()) return internal::StatusOf(handoff::ConnectTo(flags.probe));
  if (!flags.await_watch.empty()) {
    AwaitWatch(flags.await_watch, kAwaitWatchAtMost);
    return OkStatus();
  }
  net::BlockStopSignals();
  return Run(std::move(flags));
}

}  // namespace
}  // namespace optcache::sidecar

int main(int argc, char** argv) {
  using namespace optcache;  // NOLINT(google-build-using-namespace)
  CLI::App app("Hands training processes their samples before they ask", "optcache-sidecar");
  const std::string_view first = argc > 1 ? argv[1] : "";
  sidecar::Flags flags;
  const bool serves = first != "--probe" && first != "--await-watch" && first != "index";
  sidecar::AddFlags(app, flags, serves ? sidecar::Serves::kYes : sidecar::Serves::kNo);
  sidecar::AddIndexFlags(app, flags.index);
  CLI11_PARSE(app, argc, argv);
  SetUpLog("optcache-sidecar", flags.debug ? LogLevel::kDebug : LogLevel::kInfo,
           flags.json_log ? LogFormat::kJson : LogFormat::kText);
  RaiseOpenFilesLimit();
  const Status status = sidecar::RunWhatIsAsked(app, std::move(flags));
  if (status.ok()) return 0;
  std::cerr << "optcache-sidecar: " << status.message() << "\n";
  return 1;
}
