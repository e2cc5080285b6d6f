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
#include "sidecar/programs/exit_watch.h"
#include "sidecar/programs/index_subcommand.h"
#include "sidecar/programs/python_copy.h"
#include "sidecar/programs/termination.h"
#include "sidecar/programs/warm_subcommand.h"

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
  std::vector<std::string> request_prices;
  std::vector<std::string> gib_prices;
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
  app.add_option("--name", agent.name, "Name of this sidecar, for logs")->required(required);
  app.add_option("--socket", agent.socket, "Path of the socket for training processes")
      ->required(required);
  app.add_option("--allow-uid", flags.users,
                 "User ID whose processes may connect to the socket, beside root's; may be given "
                 "several times. By default, every process that can reach the socket may connect")
      ->type_name("UID");
  app.add_option("--node", agent.node,
                 "Address of this machine's optcache-node: HOST:PORT or unix:PATH")
      ->required(required);
  app.add_option("--dataset", flags.datasets,
                 "Dataset to serve, as NAME=MANIFEST_FILE=STORE_URI, or as NAME==STORE_URI if the "
                 "nodes have its manifest; may be given several times")
      ->required(required);
  app.add_option(
         "--keys", flags.keys,
         "Read the keys of the dataset NAME from files in DIR: token, or username and password, "
         "for a web server; accessKeyID, secretAccessKey and optionally sessionToken and "
         "sseCustomerKey, for a bucket; optionally ca.crt. Changed files are read again")
      ->type_name("NAME=DIR");
  app.add_option("--no-ambient-keys", flags.without_ambient_keys,
                 "Read the bucket of the dataset NAME with its --keys or without keys, and never "
                 "with keys that this process has from its environment, its machine or its "
                 "ServiceAccount. Use it for a Dataset of another namespace")
      ->type_name("NAME");
  app.add_option(
         "--requests-per-second", flags.request_rates,
         "Send at most N requests a second to the store of the dataset NAME. All sidecars of "
         "the dataset share them, as the coordinator says; by default there is no limit")
      ->type_name("NAME=N");
  app.add_option("--bytes-per-second", flags.byte_rates,
                 "Read at most this many bytes a second from the store of the dataset NAME, shared "
                 "likewise, for example images=50Mi; by default there is no limit")
      ->type_name("NAME=BYTES");
  app.add_option("--patience", flags.patiences,
                 "Retry reads of the dataset NAME for this long while its store is away, for "
                 "example images=30m; 1s to 24h, by default 10m")
      ->type_name("NAME=TIME");
  app.add_option("--price-per-request", flags.request_prices,
                 "Price of a request to the store of the dataset NAME, for example "
                 "images=0.0000004. It changes no read: optcache_saved_cost shows what the cache "
                 "saved by this price")
      ->type_name("NAME=NUMBER");
  app.add_option("--price-per-gib", flags.gib_prices,
                 "Price of a GiB from the store of the dataset NAME, in the same currency")
      ->type_name("NAME=NUMBER");
  app.add_option(
      "--manifests", agent.manifests,
      "URL of a node that serves manifests; may be given several times, the nearest first");
  app.add_option("--manifest-dir", agent.manifest_dir,
                 "Keep the manifests that nodes have sent in this folder, for the next start")
      ->type_name("DIR");
  app.add_option("--token-file", agent.token_file,
                 "Token by which nodes identify this sidecar; read again for each connection")
      ->type_name("FILE");
  app.add_option("--node-ca", agent.node_ca,
                 "CA certificates that sign the certificates of nodes; read again when they "
                 "change. By default connections to nodes do not use TLS")
      ->type_name("FILE");
  app.add_flag("--encrypt-samples", agent.encrypt_samples,
               "Use TLS for samples, too. By default, samples are sent to and from the node of the "
               "same machine in plaintext");
  app.add_option("--arena", flags.arena,
                 "Bytes of shared memory for samples: what the training processes hold, and as "
                 "much again for samples that are staged ahead")
      ->capture_default_str();
  app.add_option("--overflow", flags.overflow,
                 "Bytes beside the arena, for samples that the arena has no room for; these are "
                 "copied to the training process")
      ->capture_default_str();
  app.add_option("--computed", flags.computed,
                 "Bytes of shared memory for computed samples (optcache.cached); 0 keeps none")
      ->capture_default_str();
  app.add_option("--headspace", flags.headspace,
                 "Measure how much faster training would be if it never waited for samples: true, "
                 "or steps=N,free-steps=N,warmup-steps=N,run-steps=N. Discard what this training "
                 "run learns: it is given wrong samples while this is measured")
      ->type_name("STEPS");
  app.add_option(
         "--s3", agent.s3.address,
         "127.0.0.1:PORT at which to serve the datasets by S3, too, read-only, for training code "
         "that is not changed. Every process that reaches this loopback address can read them")
      ->type_name("HOST:PORT");
  app.add_option("--sampler", flags.samplers,
                 "Order in which clients of S3 read the dataset NAME, for example "
                 "images=torch-distributed,seed=0,world=8,ranks=4, where 4 of the 8 ranks read "
                 "through this sidecar")
      ->type_name("NAME=SAMPLER");
  app.add_option("--pod-index", agent.s3.pod,
                 "Index of this pod among the pods of the job, from 0. It tells which ranks of "
                 "--sampler read here")
      ->capture_default_str();
  app.add_option("--termination-file", flags.termination_file,
                 "At the end, write a line of JSON to this file: the result of --headspace, or "
                 "what the cache saved")
      ->type_name("FILE");
  app.add_option("--store-concurrency", agent.feeder.fetch.store_concurrency,
                 "Reads of the store that run at the same time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--ca-file", agent.ca_file,
                 "Certificates to trust instead of the system's, for https")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  agent.feeder.readers.several_jobs = true;
  app.add_option("--owner", agent.feeder.readers.owner,
                 "Name of the job, the same in all its pods; by default, any job may attach")
      ->each([&agent](const std::string& /*owner*/) { agent.feeder.readers.several_jobs = false; })
      ->envname("OPTCACHE_OWNER")
      ->capture_default_str();
  app.add_option("--incarnation", agent.feeder.readers.incarnation,
                 "Counts the restarts of the job; the same in all its pods")
      ->envname("OPTCACHE_INCARNATION")
      ->capture_default_str();
  app.add_option("--namespace", agent.feeder.readers.name_space,
                 "Kubernetes namespace of the job; by default the namespace of each dataset")
      ->envname("POD_NAMESPACE");
  app.add_option("--metrics-address", flags.http, "HOST:PORT for /metrics, /healthz and /readyz")
      ->capture_default_str();
  app.add_option("--python", flags.python,
                 "Copy the Python package to this folder, for the PYTHONPATH of training processes")
      ->type_name("DIR");
  app.add_option("--python-package", flags.python_package,
                 "Folder from which --python copies the package")
      ->capture_default_str()
      ->type_name("DIR");
  app.add_option("--exit-file", flags.exit.file,
                 "Exit when this file appears, or when all training processes have ended")
      ->type_name("FILE");
  app.add_flag("--shared-processes", flags.exit.shared_processes,
               "The containers of the pod share their processes, so the sidecar can see when "
               "training processes end. By default, it goes by the clients that are connected");
  app.add_option_function<int>(
         "--exit-after",
         [&flags](int seconds) { flags.exit.linger = std::chrono::seconds(seconds); },
         "Seconds without a training process after which training counts as ended; by default 180")
      ->check(CLI::Range(0, 24 * 3600))
      ->type_name("SECONDS");
  app.add_option(
         "--probe", flags.probe,
         "Serve nothing. Exit with 0 if a sidecar listens at this socket, and with 1 otherwise")
      ->type_name("SOCKET");
  app.add_option("--await-watch", flags.await_watch,
                 "Serve nothing. Wait until the sidecar with this --exit-file watches for the end "
                 "of training, 30 seconds at most")
      ->type_name("FILE");
  app.add_flag("--json-log", flags.json_log, "Write log lines as JSON");
  app.add_flag("--debug", flags.debug, "Log details, for debugging");
  app.footer(
      "Example:\n  optcache-sidecar --name trainer-0 --socket /run/optcache/sock \\\n      --node "
      "unix:$HOME/run/a.sock --arena 1Gi \\\n      --dataset "
      "images=/var/lib/optcache/images.manifest=https://store/images/\n`optcache manifest build` "
      "makes manifests. docs/metrics.md explains the metrics.");
}

void AddIndexFlags(CLI::App& app, IndexFlags& flags) {
  CLI::App* subcommand =
      app.add_subcommand("index",
                         "Make the manifest of a dataset and send it to the nodes. "
                         "The operator's index Jobs run this");
  subcommand->add_option("--dataset", flags.dataset, "The dataset, as NAMESPACE/NAME")->required();
  subcommand
      ->add_option("--source", flags.source,
                   "Where the objects are: a folder, a URL or the address of a bucket")
      ->required();
  subcommand
      ->add_option("--listing", flags.store.listing,
                   "File on the web server that lists the objects")
      ->default_str(storage::kListingFile);
  subcommand->add_option("--ca-file", flags.store.ca_file,
                         "Certificates to trust instead of the system's, for an https source");
  subcommand
      ->add_option("--keys", flags.store.keys_folder,
                   "Read the keys of the source from files in DIR: token, or username and "
                   "password, for a web server; accessKeyID, secretAccessKey and optionally "
                   "sessionToken and sseCustomerKey, for a bucket; optionally ca.crt")
      ->type_name("DIR");
  subcommand->add_option(
      "--include", flags.include,
      "Pattern of the objects to index: samples, archives, arrays or lists of ranges; "
      "may be given several times");
  subcommand
      ->add_option("--format", flags.format,
                   "What a sample is. Files: a file. Tar: a group of files in an archive. "
                   "TarFiles: a file in an archive. Ranges: a range of an object, from a list. "
                   "Npy: a row of an array. Megatron: a sequence of Megatron-LM")
      ->capture_default_str();
  subcommand->add_option("--order", flags.order, "Order of the samples: Path, List or ImageFolder");
  subcommand
      ->add_option("--verify", flags.verify,
                   "How reads are verified later: Checksum, or Digest, which reads all bytes once "
                   "while it indexes")
      ->capture_default_str();
  subcommand
      ->add_option("--before", flags.before,
                   "Digest of the manifest that the nodes have of this dataset. If the new one is "
                   "another, say how many objects of the source were added, changed and removed")
      ->type_name("DIGEST");
  subcommand
      ->add_option("--manifests", flags.manifests, "URL of a node; may be given several times")
      ->required();
  subcommand->add_option("--token-file", flags.token_file,
                         "Token by which nodes identify this process");
  subcommand->add_option("--node-ca", flags.node_ca,
                         "CA certificates that sign the certificates of nodes");
  subcommand
      ->add_option("--parallel", flags.store.concurrent_reads_max,
                   "Requests that run at the same time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  subcommand
      ->add_option("--requests-per-second", flags.request_rate,
                   "Send at most N requests a second, beside those that list the objects; by "
                   "default there is no limit")
      ->type_name("N");
  subcommand
      ->add_option("--bytes-per-second", flags.byte_rate,
                   "With --verify Digest, read at most this many bytes a second, for example 50Mi")
      ->type_name("BYTES");
  subcommand
      ->add_option("--patience", flags.patience,
                   "Wait this long for a source that answered before and is away now, for example "
                   "30m; by default 10m")
      ->type_name("TIME");
  subcommand->add_option("--timeout", flags.timeout_s, "Give up after this many seconds")
      ->check(CLI::Range(1, 7 * 24 * 3600))
      ->capture_default_str();
  subcommand
      ->add_option(
          "--termination-file", flags.termination_file,
          "Write a line of JSON with the result, or with the reason of the failure, to this file")
      ->capture_default_str();
}

void AddWarmFlags(CLI::App& app, WarmFlags& flags) {
  CLI::App* subcommand = app.add_subcommand(
      "warm", "Put samples into the node of this machine before a job reads them");
  subcommand->add_option("--name", flags.name, "Name of this process, for logs")->required();
  subcommand
      ->add_option("--node", flags.node,
                   "Address of this machine's optcache-node: HOST:PORT or unix:PATH")
      ->required();
  subcommand
      ->add_option("--dataset", flags.datasets,
                   "Dataset to read, as NAME=MANIFEST_FILE=STORE_URI, or as NAME==STORE_URI if the "
                   "nodes have its manifest")
      ->required();
  subcommand->add_option("--keys", flags.keys, "Keys of the dataset NAME, as for a sidecar")
      ->type_name("NAME=DIR");
  subcommand
      ->add_option("--requests-per-second", flags.request_rates,
                   "Send at most N requests a second to the store of the dataset NAME")
      ->type_name("NAME=N");
  subcommand
      ->add_option("--bytes-per-second", flags.byte_rates,
                   "Read at most this many bytes a second from the store of the dataset NAME, for "
                   "example images=50Mi")
      ->type_name("NAME=BYTES");
  subcommand
      ->add_option("--patience", flags.patiences,
                   "Patience with the store of the dataset NAME, as for a sidecar")
      ->type_name("NAME=TIME");
  subcommand
      ->add_option("--order", flags.order,
                   "Recipe of the order in which the job will read, for example 'torch-distributed "
                   "size=1281167 seed=5 world=8'; by default the order of the manifest")
      ->type_name("RECIPE");
  subcommand
      ->add_option(
          "--part", flags.parts,
          "Bytes to put into a node, for example node1=12Mi; give one for each node that is warmed "
          "at the same time. By default, everything goes into this machine's node")
      ->type_name("NODE=BYTES");
  subcommand->add_option("--at", flags.at, "Node whose --part this process puts")
      ->type_name("NODE");
  subcommand->add_option("--manifests", flags.manifests,
                         "URL of a node; may be given several times");
  subcommand->add_option("--token-file", flags.token_file,
                         "Token by which nodes identify this process");
  subcommand->add_option("--node-ca", flags.node_ca,
                         "CA certificates that sign the certificates of nodes");
  subcommand->add_flag("--encrypt-samples", flags.encrypt_samples, "Use TLS for samples, too");
  subcommand->add_option("--ca-file", flags.ca_file,
                         "Certificates to trust instead of the system's, for https");
  subcommand
      ->add_option("--store-concurrency", flags.store_concurrency,
                   "Reads of the store that run at the same time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  subcommand->add_option("--timeout", flags.timeout_s, "Give up after this many seconds")
      ->check(CLI::Range(1, 7 * 24 * 3600))
      ->capture_default_str();
  subcommand->add_flag("--progress", flags.progress,
                       "Write the progress to standard output, as lines of JSON");
  subcommand->add_option("--termination-file", flags.termination_file,
                         "Write a line of JSON with the result to this file at the end");
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

// For the owner of its pod, whom the operator tells.
std::string LastWordOf(const Agent& agent) {
  if (const HeadspaceMeter* const headspace = agent.headspace())
    return TerminationMessage(headspace->Report());
  return SavedMessage(SavedSentence(agent.saved()));
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
  for (const std::string& text : flags.request_prices)
    RETURN_IF_ERROR(AddPricePerRequest(text, flags.agent.datasets));
  for (const std::string& text : flags.gib_prices)
    RETURN_IF_ERROR(AddPricePerGib(text, flags.agent.datasets));
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
  const std::string last_word = LastWordOf(*agent);
  if (!flags.termination_file.empty() && !last_word.empty())
    WriteTermination(flags.termination_file, last_word);
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
  CLI::App app("Deliver samples to training processes before they ask for them",
               "optcache-sidecar");
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
