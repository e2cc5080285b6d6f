// optcache-operator: keeps a cluster as its Datasets and CachePlans say.

#include <charconv>
#include <cstdlib>
#include <iostream>
#include <string>

#include <CLI/CLI.hpp>

#include "base/files.h"
#include "base/log.h"
#include "base/utf8.h"
#include "net/address.h"
#include "net/stop_signals.h"
#include "operator/manager/check_injection.h"
#include "operator/manager/operator.h"
#include "operator/reconcile/dataset/index_job.h"

namespace optcache::manager {
namespace {

struct Flags {
  OperatorOptions options;
  std::string service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
  std::string check_namespace;
  std::chrono::milliseconds check_timeout = std::chrono::seconds(60);
  bool json_log = false;
  bool debug = false;
};

std::string Environment(const char* name) {
  // Read once, before any thread starts. NOLINTNEXTLINE(concurrency-mt-unsafe)
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// "90s", "250ms", "10m", "24h".
Result<std::chrono::milliseconds> ParseDuration(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data(), end, number);
  const std::string_view name(unit, static_cast<std::size_t>(end - unit));
  constexpr std::int64_t kMost = 1'000'000'000;
  if (error == std::errc() && number >= 0 && number < kMost) {
    if (name == "ms") return std::chrono::milliseconds(number);
    if (name == "s") return std::chrono::seconds(number);
    if (name == "m") return std::chrono::minutes(number);
    if (name == "h") return std::chrono::hours(number);
  }
  return Error(Code::kInvalidArgument, "\"" + text + "\": allowed: a number and ms, s, m or h");
}

// A flag of a duration, which is handed to `set`.
template <typename F>
void AddDuration(CLI::App& app, const std::string& name, const std::string& help, F set) {
  app.add_option_function<std::string>(
         name, [set](const std::string& text) { set(ParseDuration(text).value()); }, help)
      ->check([](const std::string& text) {
        const auto duration = ParseDuration(text);
        return duration ? std::string() : std::string(duration.error().message());
      })
      ->type_name("DURATION");
}

void AddLifetime(CLI::App& app, const std::string& name, const std::string& help,
                 std::int64_t& seconds) {
  AddDuration(app, name, help, [&seconds](std::chrono::milliseconds value) {
    seconds = std::chrono::duration_cast<std::chrono::seconds>(value).count();
  });
}

void AddWait(CLI::App& app, const std::string& name, const std::string& help, Duration& wait) {
  AddDuration(app, name, help, [&wait](std::chrono::milliseconds value) { wait = value; });
}

void AddFlags(CLI::App& app, Flags& flags) {
  OperatorOptions& options = flags.options;
  app.add_option("--name", options.name, "Full name of the installed chart")->capture_default_str();
  app.add_option("--system-namespace", options.system_namespace,
                 "Namespace in which optcache is installed; by default $POD_NAMESPACE");
  app.add_option("--sidecar-image", options.sidecar_image,
                 "Image to inject into training pods and to run in index Jobs");
  app.add_option("--image-pull-policy", options.image_pull_policy, "Pull policy of that image")
      ->capture_default_str();
  app.add_option("--image-pull-secret", options.image_pull_secrets,
                 "Secret with which index Jobs pull that image; may be given several times");
  app.add_flag("--ordinary-sidecars", options.ordinary_sidecars,
               "Inject ordinary containers, as for Kubernetes before 1.29, whatever version the "
               "machines have");
  app.add_option_function<std::string>(
         "--index-pod",
         [&options](const std::string& text) {
           options.index_pod = reconcile::ParseIndexPod(text).value();
         },
         "Resources, nodeSelector, tolerations and securityContext of the pods of index Jobs")
      ->check([](const std::string& text) {
        const auto pod = reconcile::ParseIndexPod(text);
        return pod ? std::string() : std::string(pod.error().message());
      })
      ->type_name("JSON");
  app.add_option("--http-proxy", options.proxy.http,
                 "Proxy through which pods reach sources with http://");
  app.add_option("--https-proxy", options.proxy.https,
                 "Proxy through which pods reach sources with https://");
  app.add_option("--no-proxy", options.proxy.none,
                 "Hosts that pods reach without a proxy, separated by commas");
  app.add_option("--webhook-address", options.webhook_address,
                 "HOST:PORT for admission webhooks, by HTTPS")
      ->capture_default_str();
  app.add_option("--control-address", options.control_address, "HOST:PORT for nodes, by HTTPS")
      ->capture_default_str();
  app.add_option("--metrics-address", options.metrics_address,
                 "HOST:PORT for /metrics, /healthz and /readyz")
      ->capture_default_str();
  app.add_option("--service-account", flags.service_account,
                 "Folder with the token, ca.crt and namespace for the API server")
      ->capture_default_str();
  AddLifetime(app, "--ca-lifetime", "Lifetime of the CA's certificate",
              options.authority.ca_lifetime_seconds);
  AddLifetime(app, "--leaf-lifetime", "Lifetime of the operator's certificate",
              options.authority.leaf_lifetime_seconds);
  AddLifetime(app, "--node-leaf-lifetime", "Lifetime of the certificates of nodes",
              options.authority.node_leaf_lifetime_seconds);
  AddLifetime(app, "--propagation-delay",
              "Time after which all clients and nodes have a new CA bundle",
              options.authority.propagation_seconds);
  AddWait(app, "--lease-duration", "Time for which a silent leader remains the leader",
          options.lease_duration);
  AddWait(app, "--renew-deadline", "Time for which a leader tries to renew its lease",
          options.renew_deadline);
  AddWait(app, "--retry-period", "Time between two attempts to become or remain the leader",
          options.retry_period);
  AddWait(app, "--shutdown-delay", "Time for which it accepts requests after SIGTERM",
          options.shutdown_delay);
  AddWait(app, "--drain-timeout", "Time that requests in flight may take after the shutdown delay",
          options.drain_timeout);
  app.add_flag("--json-log", flags.json_log, "Write log lines as JSON");
  app.add_flag("--debug", flags.debug, "Log details, for debugging");
  app.footer("operator/README.md explains each flag.");
}

Status CheckOptions(const OperatorOptions& options) {
  if (options.sidecar_image.empty())
    return {Code::kInvalidArgument, "--sidecar-image is missing: which image to inject"};
  if (options.system_namespace.empty())
    return {Code::kInvalidArgument, "--system-namespace and $POD_NAMESPACE are missing"};
  if (options.pod_name.empty() || options.pod_ip.empty())
    return {Code::kInvalidArgument, "$POD_NAME and $POD_IP are missing: set them from the pod"};
  if (options.renew_deadline >= options.lease_duration ||
      options.retry_period >= options.renew_deadline)
    return {Code::kInvalidArgument,
            "--retry-period must be less than --renew-deadline, and --renew-deadline less than "
            "--lease-duration"};
  return OkStatus();
}

Status Run(const Flags& flags) {
  OperatorOptions options = flags.options;
  RETURN_IF_ERROR(CheckOptions(options));
  ASSIGN_OR_RETURN(const kube::ApiAccess access, kube::InClusterAccess(flags.service_account));
  ASSIGN_OR_RETURN(const net::Address control, net::ParseAddress(options.control_address));
  options.control_port = control.port;
  net::EventLoop loop;
  Status end;
  ASSIGN_OR_RETURN(const std::unique_ptr<Operator> op,
                   Operator::Start(loop, SystemClock(), access, options, [&](std::string why) {
                     end = {Code::kUnavailable, std::move(why)};
                     loop.Stop();
                   }));
  const net::StopSignals signals(loop, [&] {
    Log(LogLevel::kInfo, "stopping");
    op->Stop([&loop] { loop.Stop(); });
  });
  Log(LogLevel::kInfo, "operator started",
      {{"version", options.version},
       {"webhook", op->webhook_port()},
       {"control", op->control_port()},
       {"pages", op->pages_port()}});
  loop.Run();
  return end;
}

Status Check(const Flags& flags) {
  ASSIGN_OR_RETURN(const kube::ApiAccess access, kube::InClusterAccess(flags.service_account));
  net::EventLoop loop;
  const auto client = kube::MakeApiClient(loop, SystemClock(), access);
  Status result;
  const InjectionCheck check(loop, SystemClock(), *client, flags.check_namespace,
                             flags.check_timeout, [&](Status status) {
                               result = std::move(status);
                               loop.Stop();
                             });
  loop.Run();
  if (result.ok()) std::cout << "a pod was injected, and the API server admitted it\n";
  return result;
}

}  // namespace
}  // namespace optcache::manager

int main(int argc, char** argv) {
  using namespace optcache;  // NOLINT(google-build-using-namespace): of this project
  manager::Flags flags;
  flags.options.version = OPTCACHE_VERSION;
  flags.options.pod_name = manager::Environment("POD_NAME");
  flags.options.pod_ip = manager::Environment("POD_IP");
  flags.options.system_namespace = manager::Environment("POD_NAMESPACE");
  CLI::App app("Make a cluster match its Datasets and CachePlans", "optcache-operator");
  app.set_version_flag("--version", OPTCACHE_VERSION);
  manager::AddFlags(app, flags);
  CLI::App* const check = app.add_subcommand(
      "check-injection", "Check that pods are injected and admitted. `helm test` runs this");
  check
      ->add_option("--namespace", flags.check_namespace,
                   "Namespace in which to create a pod, as a dry run")
      ->required();
  manager::AddDuration(*check, "--timeout", "Try again for this long",
                       [&flags](std::chrono::milliseconds value) { flags.check_timeout = value; });
  CLI11_PARSE(app, argc, argv);
  SetUpLog("optcache-operator", flags.debug ? LogLevel::kDebug : LogLevel::kInfo,
           flags.json_log ? LogFormat::kJson : LogFormat::kText);
  RaiseOpenFilesLimit();
  net::BlockStopSignals();
  const Status status = *check ? manager::Check(flags) : manager::Run(flags);
  if (!status.ok()) {
    std::cerr << "optcache-operator: " << Visible(status.message(), "\n") << "\n";
    return 1;
  }
  return 0;
}
