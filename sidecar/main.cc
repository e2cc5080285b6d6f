// optcache-sidecar: hands training processes their samples before they ask.

#include <csignal>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/files.h"
#include "base/log.h"
#include "base/utf8.h"
#include "handoff/socket.h"
#include "headspace/report_json.h"
#include "metrics/metrics_page.h"
#include "net/service_pages.h"
#include "net/stop_signals.h"
#include "sidecar/agent.h"
#include "sidecar/exit_watch.h"
#include "sidecar/index_verb.h"
#include "sidecar/python_copy.h"
#include "sidecar/termination.h"
#include "sidecar/warm_verb.h"

namespace optcache::sidecar {
namespace {

// A sidecar that does not come so far has ended or will not: its pod trains without it.
constexpr Duration kAwaitWatchAtMost = std::chrono::seconds(30);

struct Flags {
  AgentOptions agent;
  IndexFlags index;
  WarmFlags warm;
  std::string python;
  std::string python_package = "/usr/share/optcache/python/optcache";
  ExitWatch::Options exit;
  std::string probe;
  std::string await_watch;
  std::string http = "127.0.0.1:0";
  std::string arena = "1Gi";
  std::string computed = "0";
  std::string overflow = "256Mi";
  std::string headspace;
  std::string termination_file;
  std::vector<std::string> datasets;
  std::vector<std::string> keys;
  std::vector<std::string> without_ambient_keys;
  std::vector<std::string> request_rates;
  std::vector<std::string> patiences;
  std::vector<std::string> byte_rates;
  std::vector<std::string> samplers;
  std::vector<std::uint32_t> users;
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
  app.add_option("--allow-uid", flags.users,
                 "User ID whose processes may connect there, beside root's; may be given several "
                 "times. Without: everybody who reaches the socket")
      ->type_name("UID");
  app.add_option("--node", agent.node, "HOST:PORT or unix:PATH of this machine's optcache-node")
      ->required(required);
  app.add_option(
         "--dataset", flags.datasets,
         "NAME=MANIFEST_FILE=STORE_URI of a dataset to serve, or NAME==STORE_URI if the nodes "
         "have its manifest; may be given several times")
      ->required(required);
  app.add_option(
         "--keys", flags.keys,
         "NAME=DIR: token, or username and password, for the web server of that dataset, or "
         "accessKeyID, secretAccessKey and perhaps sessionToken and sseCustomerKey, for its "
         "bucket; and perhaps ca.crt; each a file in DIR, read again when they change")
      ->type_name("NAME=DIR");
  app.add_option("--no-ambient-keys", flags.without_ambient_keys,
                 "NAME of a dataset that somebody else has named: its bucket is read by --keys or "
                 "without keys, never by those of the environment and the like")
      ->type_name("NAME");
  app.add_option("--requests-per-second", flags.request_rates,
                 "NAME=N: the store of that dataset gets N requests a second from this process, at "
                 "most; without: no limit")
      ->type_name("NAME=N");
  app.add_option("--bytes-per-second", flags.byte_rates,
                 "NAME=BYTES, for example images=50Mi: likewise, for what is read of it")
      ->type_name("NAME=BYTES");
  app.add_option("--patience", flags.patiences,
                 "NAME=TIME, for example images=30m: reads of that dataset are tried again for so "
                 "long while its store is away, from 1s to 24h; without: 10m")
      ->type_name("NAME=TIME");
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
  app.add_option("--headspace", flags.headspace,
                 "Measure how much faster training would get if samples were there at once: true, "
                 "or steps=N,free-steps=N,warmup-steps=N,run-steps=N; its results are not for use")
      ->type_name("STEPS");
  app.add_option("--s3", agent.s3.address,
                 "127.0.0.1:PORT at which the datasets are served by S3, too, for training that is "
                 "not changed: read-only, and to everybody on this machine's loopback")
      ->type_name("HOST:PORT");
  app.add_option("--sampler", flags.samplers,
                 "NAME=SAMPLER: the order in which that dataset is read by S3, for example "
                 "images=torch-distributed,seed=0,world=8,ranks=4; ranks is how many of them read "
                 "here")
      ->type_name("NAME=SAMPLER");
  app.add_option("--pod-index", agent.s3.pod,
                 "Place of this pod among the job's, from 0: so its ranks for --sampler are known")
      ->capture_default_str();
  app.add_option("--termination-file", flags.termination_file,
                 "Gets a line of JSON at the end: what --headspace has measured")
      ->type_name("FILE");
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
      "      --node unix:$HOME/run/a.sock --arena 1Gi \\\n"
      "      --dataset images=/var/lib/optcache/images.manifest=https://store/images/\n"
      "Manifests are made by `optcache manifest`. What its numbers mean: docs/metrics.md");
}

void AddIndexFlags(CLI::App& app, IndexFlags& flags) {
  CLI::App* verb = app.add_subcommand(
      "index", "Makes a dataset's manifest and gives it to the nodes; for the operator's Jobs");
  verb->add_option("--dataset", flags.dataset, "NAMESPACE/NAME")->required();
  verb->add_option("--source", flags.source,
                   "Folder, URL or address of a bucket where the objects are")
      ->required();
  verb->add_option("--listing", flags.store.listing, "The file by which a web server lists them")
      ->capture_default_str();
  verb->add_option("--ca-file", flags.store.ca_file,
                   "Certificates to trust instead of the system's, for sources by https");
  verb->add_option("--keys", flags.store.keys_folder,
                   "Token, or username and password, for a web server, or accessKeyID, "
                   "secretAccessKey and perhaps sessionToken and sseCustomerKey, for a bucket; and "
                   "perhaps ca.crt; each a file in DIR")
      ->type_name("DIR");
  verb->add_option("--include", flags.include,
                   "GLOB of what is a sample, an archive, an array or an index of ranges; may be "
                   "given again");
  verb->add_option(
          "--format", flags.format,
          "Files, Tar (samples are groups of files in archives), TarFiles (files in "
          "archives), Ranges (ranges of objects, by a list), Npy (rows of arrays) or Megatron "
          "(sequences of Megatron-LM)")
      ->capture_default_str();
  verb->add_option("--order", flags.order, "Path, List or ImageFolder");
  verb->add_option("--verify", flags.verify, "Checksum, or Digest: read everything once")
      ->capture_default_str();
  verb->add_option("--manifests", flags.manifests, "URL of a node; may be given again")->required();
  verb->add_option("--token-file", flags.token_file, "Token that tells nodes who this is");
  verb->add_option("--node-ca", flags.node_ca, "Certificates that sign nodes'");
  verb->add_option("--parallel", flags.store.concurrent_reads_max, "Requests at a time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  verb->add_option("--requests-per-second", flags.request_rate,
                   "Requests a second, at most, but for the listing; without: no limit")
      ->type_name("N");
  verb->add_option("--bytes-per-second", flags.byte_rate,
                   "Bytes a second, at most, for example 50Mi: for --verify Digest")
      ->type_name("BYTES");
  verb->add_option("--patience", flags.patience,
                   "How long a source that has answered may be away, for example 30m; without: 10m")
      ->type_name("TIME");
  verb->add_option("--timeout", flags.timeout_s, "Seconds for all of it")
      ->check(CLI::Range(1, 7 * 24 * 3600))
      ->capture_default_str();
  verb->add_option("--termination-file", flags.termination_file,
                   "Gets a line of JSON: what came out, or why nothing did")
      ->capture_default_str();
}

void AddWarmFlags(CLI::App& app, WarmFlags& flags) {
  CLI::App* verb = app.add_subcommand(
      "warm", "Puts samples into the node of this machine before a job reads them");
  verb->add_option("--name", flags.name, "This process's name, for logs")->required();
  verb->add_option("--node", flags.node, "HOST:PORT or unix:PATH of this machine's optcache-node")
      ->required();
  verb->add_option("--dataset", flags.datasets,
                   "NAME=MANIFEST_FILE=STORE_URI, or NAME==STORE_URI if the nodes have its "
                   "manifest")
      ->required();
  verb->add_option("--keys", flags.keys, "NAME=DIR, as of a sidecar")->type_name("NAME=DIR");
  verb->add_option("--requests-per-second", flags.request_rates, "NAME=N, of the store, at most")
      ->type_name("NAME=N");
  verb->add_option("--bytes-per-second", flags.byte_rates,
                   "NAME=BYTES, for example images=50Mi: read of the store, at most")
      ->type_name("NAME=BYTES");
  verb->add_option("--patience", flags.patiences, "NAME=TIME, as of a sidecar")
      ->type_name("NAME=TIME");
  verb->add_option("--order", flags.order,
                   "Recipe of the order in which the job will read, for example "
                   "'torch-distributed size=1281167 seed=5 world=8'; without: as the list has them")
      ->type_name("RECIPE");
  verb->add_option("--part", flags.parts,
                   "What may be put into a node, for example node1=12Mi, for each that is warmed "
                   "together; without: everything into this one")
      ->type_name("NODE=BYTES");
  verb->add_option("--at", flags.at, "The node of which this process puts the part")
      ->type_name("NODE");
  verb->add_option("--manifests", flags.manifests, "URL of a node; may be given again");
  verb->add_option("--token-file", flags.token_file, "Token that tells nodes who this is");
  verb->add_option("--node-ca", flags.node_ca, "Certificates that sign nodes'");
  verb->add_flag("--tls-throughout", flags.tls_throughout, "Samples by TLS, too");
  verb->add_option("--ca-file", flags.ca_file,
                   "Certificates to trust instead of the system's, for https");
  verb->add_option("--store-concurrency", flags.store_concurrency, "Store reads at a time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  verb->add_option("--timeout", flags.timeout_s, "Seconds for all of it")
      ->check(CLI::Range(1, 7 * 24 * 3600))
      ->capture_default_str();
  verb->add_flag("--progress", flags.progress, "Lines of JSON on standard output: how far it is");
  verb->add_option("--termination-file", flags.termination_file,
                   "Gets a line of JSON at the end: what came of it");
}

// Ready with or without a node: samples are served.
net::HttpHandler Pages(const metrics::MetricsPage& page, const HeadspaceMeter* headspace) {
  net::HttpHandler usual =
      net::Serve({.metrics = [&page] { return page.Render(); }, .ready = OkStatus});
  if (headspace == nullptr) return usual;
  return [usual = std::move(usual), headspace](const net::HttpRequest& request,
                                               const net::HttpResponder& respond) {
    if (request.path() != "/headspace") return usual(request, respond);
    respond(net::HttpResponse::Json(200, headspace::ReportAsJson(headspace->Report())));
  };
}

Status Run(Flags flags) {
  if (!flags.users.empty()) flags.agent.users = flags.users;
  ASSIGN_OR_RETURN(flags.agent.arena_bytes, ParseQuantity(flags.arena));
  ASSIGN_OR_RETURN(flags.agent.feeder.overflow_bytes, ParseQuantity(flags.overflow));
  ASSIGN_OR_RETURN(flags.agent.computed_bytes, ParseQuantity(flags.computed));
  if (!flags.headspace.empty()) {
    ASSIGN_OR_RETURN(flags.agent.feeder.headspace, headspace::ParseOptions(flags.headspace));
  }
  for (const std::string& text : flags.datasets) {
    ASSIGN_OR_RETURN(DatasetSource source, ParseDatasetSource(text));
    flags.agent.datasets.push_back(std::move(source));
  }
  for (const std::string& text : flags.keys)
    RETURN_IF_ERROR(AddKeys(text, flags.agent.datasets));
  for (const std::string& name : flags.without_ambient_keys)
    RETURN_IF_ERROR(LeaveOutAmbientKeys(name, flags.agent.datasets));
  for (const std::string& text : flags.request_rates)
    RETURN_IF_ERROR(AddRequestRate(text, flags.agent.datasets));
  for (const std::string& text : flags.byte_rates)
    RETURN_IF_ERROR(AddByteRate(text, flags.agent.datasets));
  for (const std::string& text : flags.patiences)
    RETURN_IF_ERROR(AddPatience(text, flags.agent.datasets));
  for (const std::string& text : flags.samplers)
    RETURN_IF_ERROR(AddSampler(text, flags.agent.datasets, flags.agent.s3));
  if (!flags.agent.s3.address.empty() && flags.agent.feeder.headspace) {
    return {Code::kInvalidArgument,
            "--headspace answers with other samples than are asked for, so it goes without --s3"};
  }
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
                   net::ListenHttp(loop, flags.http, {}, Pages(page, agent->headspace())));
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
  if (const HeadspaceMeter* const headspace = agent->headspace();
      headspace != nullptr && !flags.termination_file.empty())
    WriteTermination(flags.termination_file, TerminationMessage(headspace->Report()));
  return OkStatus();
}

Status RunWhatIsAsked(const CLI::App& app, Flags flags) {
  if (app.got_subcommand("index")) {
    std::signal(SIGPIPE, SIG_IGN);  // a peer that has gone is an error of the write
    return RunIndex(flags.index);
  }
  if (app.got_subcommand("warm")) {
    net::BlockStopSignals();
    return RunWarm(flags.warm);
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
  const bool is_verb = first == "index" || first == "warm";
  const bool serves = first != "--probe" && first != "--await-watch" && !is_verb;
  sidecar::AddFlags(app, flags, serves ? sidecar::Serves::kYes : sidecar::Serves::kNo);
  sidecar::AddIndexFlags(app, flags.index);
  sidecar::AddWarmFlags(app, flags.warm);
  CLI11_PARSE(app, argc, argv);
  SetUpLog("optcache-sidecar", flags.debug ? LogLevel::kDebug : LogLevel::kInfo,
           flags.json_log ? LogFormat::kJson : LogFormat::kText);
  RaiseOpenFilesLimit();
  const Status status = sidecar::RunWhatIsAsked(app, std::move(flags));
  if (status.ok()) return 0;
  std::cerr << "optcache-sidecar: " << Visible(status.message(), "\n") << "\n";
  return 1;
}
