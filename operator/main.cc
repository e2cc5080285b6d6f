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
  app.add_option("--name", options.name, "The chart's full name")->capture_default_str();
  app.add_option("--system-namespace", options.system_namespace,
                 "Where it is installed; default: $POD_NAMESPACE");
  app.add_option("--sidecar-image", options.sidecar_image,
                 "Injected into training pods and run by index Jobs");
  app.add_option("--image-pull-policy", options.image_pull_policy, "Of that image")
      ->capture_default_str();
  app.add_option("--image-pull-secret", options.image_pull_secrets,
                 "Secret that index Jobs refer to; may be given again");
  app.add_flag("--ordinary-sidecars", options.ordinary_sidecars,
               "Inject as on machines of before Kubernetes 1.29, whatever their version");
  app.add_option_function<std::string>(
         "--index-pod",
         [&options](const std::string& text) {
           options.index_pod = reconcile::ParseIndexPod(text).value();
         },
         "Resources, nodeSelector, tolerations and securityContext of index Jobs")
      ->check([](const std::string& text) {
        const auto pod = reconcile::ParseIndexPod(text);
        return pod ? std::string() : std::string(pod.error().message());
      })
      ->type_name("JSON");
  app.add_option("--webhook-address", options.webhook_address, "HOST:PORT for admission, HTTPS")
      ->capture_default_str();
  app.add_option("--control-address", options.control_address, "HOST:PORT for nodes, HTTPS")
      ->capture_default_str();
  app.add_option("--pages-address", options.pages_address,
                 "HOST:PORT for /metrics, /healthz and /readyz")
      ->capture_default_str();
  app.add_option("--service-account", flags.service_account,
                 "Folder with token, ca.crt and namespace for the API server")
      ->capture_default_str();
  AddLifetime(app, "--ca-lifetime", "Of the CA", options.authority.ca_lifetime_seconds);
  AddLifetime(app, "--leaf-lifetime", "Of the operator's certificate",
              options.authority.leaf_lifetime_seconds);
  AddLifetime(app, "--node-leaf-lifetime", "Of nodes' certificates",
              options.authority.node_leaf_lifetime_seconds);
  AddLifetime(app, "--propagation-delay", "After which everybody has a new CA bundle",
              options.authority.propagation_seconds);
  AddWait(app, "--lease-duration", "How long a silent leader keeps its place",
          options.lease_duration);
  AddWait(app, "--renew-deadline", "How long a leader tries to renew", options.renew_deadline);
  AddWait(app, "--retry-period", "Between attempts to lead", options.retry_period);
  AddWait(app, "--shutdown-delay", "How long it serves after SIGTERM", options.shutdown_delay);
  AddWait(app, "--drain-timeout", "How long requests in flight may take then",
          options.drain_timeout);
  app.add_flag("--json-log", flags.json_log, "Log lines as JSON");
  app.add_flag("--debug", flags.debug, "Log more");
  app.footer("What each means: operator/README.md");
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
    return {Code::kInvalidArgument, "needs --retry-period < --renew-deadline < --lease-duration"};
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
  CLI::App app("Keeps a cluster as its Datasets and CachePlans say", "optcache-operator");
  app.set_version_flag("--version", OPTCACHE_VERSION);
  manager::AddFlags(app, flags);
  CLI::App* const check = app.add_subcommand(
      "check-injection", "Whether pods are injected and admitted, for `helm test`");
  check->add_option("--namespace", flags.check_namespace, "Where a pod is tried, as a dry run")
      ->required();
  manager::AddDuration(*check, "--timeout", "Tries again until then",
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
