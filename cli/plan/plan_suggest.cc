// The subcommand `plan suggest`: finds a running cache, asks for what is not known, searches,
// prints.
//
// The idea: everything that counts comes from one FoundCache, made from the status of `optcache up`
// (FindOnMachine) or from a CachePlan and its Dataset (FindInCluster). What it is made into is pure
// and stands elsewhere: running_cache.cc, suggestion.cc, until_search.cc. Rates are measured only
// if the goal needs them and the user gives none: pages of sidecars are read twice, `--measure`
// apart.
//
// Only ApplySuggestion changes anything. It shows before and after, asks, and writes a patch that
// fails if the capacity is no longer the one that was read.

#include "cli/plan/plan_suggest.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/duration_text.h"
#include "base/files.h"
#include "cli/cluster/cluster_questions.h"
#include "cli/cluster/plan_questions.h"
#include "cli/explain/pod_diagnosis.h"
#include "cli/local/cache_place.h"
#include "cli/local/coordinator_status.h"
#include "cli/local/fetch_pages.h"
#include "cli/manifest/manifest_sizes.h"
#include "cli/plan/plan_in_cluster.h"
#include "cli/plan/suggestion.h"
#include "cli/simulate/until_search.h"
#include "cli/terminal/choose.h"
#include "cli/terminal/duration_text.h"
#include "cli/terminal/print.h"
#include "cli/terminal/stop_wait.h"
#include "cli/terminal/whole_number.h"
#include "dataset/manifest.h"

namespace optcache::cli {
namespace {

using kube::Json;

constexpr std::uint32_t kUsualEpochs = 6;
constexpr std::size_t kMaxPagesInCluster = 64;           // each is a call of kubectl
constexpr Duration kPatience = std::chrono::seconds(5);  // with the pages of sidecars

constexpr const char* kSuggestMore =
    R"(Simulates the jobs that read the dataset now: their orders, their speeds, the sizes of the samples. The goal is how
long training waits for the store, or what a run costs at the store. Without --until, the goal is spec.goal of the
CachePlan. This changes nothing, unless you set --apply and confirm.

NAME is a dataset of `optcache up`; with `kubectl optcache` or --cluster, a CachePlan.

Examples:
  Find the least capacity with which training waits 2 % of the time at most, and draw the curve:
    optcache plan suggest images --until waiting=2% --plot curve.svg
  Set rates that are not measured now, in bytes a second:
    optcache plan suggest images --until waiting=2% --store-rate 500Mi --job-rate 800Mi
  Find it for the goal of a CachePlan, and write it into the Dataset after a question:
    kubectl optcache plan suggest imagenet -n vision --apply)";

struct SuggestFlags : PlanInClusterFlags {
  std::vector<std::string> name;
  CachePlace place;
  std::string until;
  std::uint32_t epochs = 0;
  std::string manifest;
  std::string store_rate;
  std::string job_rate;
  std::string measure = "10s";
  std::string price_per_request;
  std::string price_per_gib;
  std::string plot;
  bool apply = false;
  bool yes = false;
};

// Where a running cache was found, and how more can be had of it.
struct FoundCache {
  RunningCache cache;
  Json resource;  // the Dataset; in a cluster alone
  ManifestSizes sizes;
  std::string sizes_basis;
  std::function<Result<PagesBySidecar>()> ask_pages;
};

Result<ManifestSizes> SizesFrom(const std::string& file, const RunningCache& cache) {
  ASSIGN_OR_RETURN(std::string bytes, ReadFile(file, dataset::kManifestBytesMax));
  ASSIGN_OR_RETURN(ManifestSizes sizes, SizesInManifest(std::move(bytes), file));
  if (sizes.digest == cache.manifest_digest) return sizes;
  return Error(Code::kInvalidArgument,
               fmt::format("--manifest {}: it has the digest {}, and {} {}", file, sizes.digest,
                           cache.dataset, cache.manifest_digest));
}

Result<PagesBySidecar> SidecarPagesOnMachine(const std::vector<std::string>& urls) {
  const std::vector<Result<FetchedPage>> pages = FetchPages(urls, kPatience);
  const auto silent = std::ranges::count_if(pages, [](const auto& page) { return !page; });
  if (silent > 0) {
    return Error(Code::kUnavailable,
                 fmt::format("{} of {} sidecars do not answer", silent, urls.size()));
  }
  PagesBySidecar found;
  for (std::size_t i = 0; i < urls.size(); ++i)
    found[urls[i]] = ParseMetrics(pages[i]->text);
  return found;
}

Result<FoundCache> FindOnMachine(const SuggestFlags& flags) {
  ASSIGN_OR_RETURN(const std::string url, FindCoordinator(flags.place));
  ASSIGN_OR_RETURN(const CoordinatorAnswer answer, AskCoordinator(url));
  FoundCache found;
  ASSIGN_OR_RETURN(found.cache,
                   RunningCacheOf(answer.status, flags.name.empty() ? "" : flags.name.front()));
  const std::string& digest = found.cache.manifest_digest;
  ASSIGN_OR_RETURN(std::string manifest, FetchManifest(url, digest));
  ASSIGN_OR_RETURN(found.sizes, SizesInManifest(std::move(manifest), url));
  found.sizes_basis = fmt::format("of the manifest {}.", digest.substr(0, 16));
  found.ask_pages = [urls = SidecarUrls(answer.status)] { return SidecarPagesOnMachine(urls); };
  return found;
}

Result<Json> GetResource(const Kubectl& kubectl, const std::string& what,
                         const std::string& name_space) {
  std::vector<std::string> arguments = {"get", what, "--output=json"};
  if (!name_space.empty()) arguments.push_back("--namespace=" + name_space);
  const Result<std::string> json = kubectl.Run(arguments);
  if (!json) return std::unexpected(ExplainMissing(json.error()));
  return Json::parse(*json, nullptr, /*allow_exceptions=*/false);
}

Result<FoundCache> FindInCluster(const SuggestFlags& flags) {
  const Kubectl kubectl(flags.kubectl);
  std::string name;
  std::string name_space = flags.name_space;
  if (flags.name.empty()) {
    ASSIGN_OR_RETURN(const PlanResource only, AskForOnlyPlan(kubectl, name_space));
    name = only.name;
  } else {
    ASSIGN_OR_RETURN(name, PlanNameOf(flags.name));
  }
  ASSIGN_OR_RETURN(const Json plan,
                   GetResource(kubectl, "cacheplans.optcache.io/" + name, name_space));
  name_space = kube::KeyOf(plan).ns;
  FoundCache found;
  ASSIGN_OR_RETURN(
      found.resource,
      GetResource(kubectl, "datasets.optcache.io/" + kube::TextAt(plan, "/spec/dataset"),
                  name_space));
  ASSIGN_OR_RETURN(found.cache, RunningCacheOf(plan, found.resource));
  const RunningCache& cache = found.cache;
  if (flags.manifest.empty()) {
    ASSIGN_OR_RETURN(found.sizes.sizes, MeanSizes(cache));
    found.sizes_basis =
        "equal, of the mean of all samples. Set --manifest to count with their own.";
  } else {
    ASSIGN_OR_RETURN(found.sizes, SizesFrom(flags.manifest, cache));
    found.sizes_basis = "of " + flags.manifest + ".";
  }
  found.ask_pages = [kubectl, cache = found.cache] {
    return SidecarPagesInCluster(kubectl, cache);
  };
  return found;
}

Result<double> ParseRate(const char* flag, const std::string& text) {
  if (text.empty()) return 0;
  Result<ByteCount> bytes = ParseQuantity(text);
  if (bytes && *bytes == 0)
    bytes = Error(Code::kInvalidArgument, "it takes bytes a second, more than 0: 500Mi");
  if (!bytes) return std::unexpected(std::move(bytes).error().WithContext(flag));
  return static_cast<double>(*bytes);
}

Result<StoreShare> FindShare(const SuggestFlags& flags, const FoundCache& found) {
  ASSIGN_OR_RETURN(const double store_rate, ParseRate("--store-rate", flags.store_rate));
  ASSIGN_OR_RETURN(const double job_rate, ParseRate("--job-rate", flags.job_rate));
  std::optional<MeasuredRates> measured;
  if (store_rate == 0 || job_rate == 0) {
    ASSIGN_OR_RETURN(const Duration time, ParseDuration(flags.measure));
    ASSIGN_OR_RETURN(const auto first, found.ask_pages());
    const MonotonicTime begun = SystemClock().Now();
    StopWait stop;
    if (!stop.For(time)) return Error(Code::kCancelled, "interrupted");
    ASSIGN_OR_RETURN(const auto second, found.ask_pages());
    const std::chrono::duration<double> seconds = SystemClock().Now() - begun;
    measured = RatesBetween(first, second, seconds.count(), found.cache.dataset);
  }
  return ShareOf(store_rate, job_rate, measured);
}

Result<simulation::Goal> FindGoal(const SuggestFlags& flags, const RunningCache& cache) {
  simulation::Goal goal;
  if (!flags.until.empty()) {
    ASSIGN_OR_RETURN(goal, ParseGoal(flags.until));
  } else if (cache.goal) {
    goal = SimulatedGoal(*cache.goal);
  } else {
    return Error(Code::kInvalidArgument,
                 flags.place.cluster
                     ? "set --until waiting=2% or --until cost=12.5, or spec.goal of the "
                       "CachePlan"
                     : "set --until waiting=2% or --until cost=12.5");
  }
  if (goal.of == simulation::Goal::Of::kWaiting) return goal;
  goal.price = cache.price;
  const auto read = [](const char* flag, const std::string& text, double& out) -> Status {
    if (text.empty()) return OkStatus();
    const Result<double> value = dataset::ParsePrice(text);
    if (!value) return Status(value.error()).WithContext(flag);
    out = *value;
    return OkStatus();
  };
  RETURN_IF_ERROR(read("--price-per-request", flags.price_per_request, goal.price.per_request));
  RETURN_IF_ERROR(read("--price-per-gib", flags.price_per_gib, goal.price.per_gib));
  if (goal.price == dataset::StorePrice{}) {
    return Error(
        Code::kInvalidArgument,
        std::string("no price is known: set --price-per-request, --price-per-gib or both") +
            (flags.place.cluster ? ", or spec.cost of the Dataset" : ""));
  }
  if (flags.epochs == 0) {
    return Error(Code::kInvalidArgument,
                 "the cost is that of a whole run: set --epochs, the epochs of the job whose "
                 "epochs take longest");
  }
  return goal;
}

Result<Suggestion> Suggest(const SuggestFlags& flags, const FoundCache& found) {
  Suggestion suggestion{.cache = found.cache,
                        .report = {},
                        .epochs = flags.epochs == 0 ? kUsualEpochs : flags.epochs,
                        .sizes = found.sizes_basis,
                        .rates = {}};
  ASSIGN_OR_RETURN(const simulation::Goal goal, FindGoal(flags, found.cache));
  StoreShare store;
  if (goal.of == simulation::Goal::Of::kWaiting) {
    ASSIGN_OR_RETURN(store, FindShare(flags, found));
  }
  suggestion.rates = store.basis;
  ASSIGN_OR_RETURN(const SimulateScene scene,
                   SceneOf(found.cache, found.sizes.sizes, goal, suggestion.epochs, store));
  ASSIGN_OR_RETURN(suggestion.report, SearchUntil(scene, !flags.plot.empty()));
  ASSIGN_OR_RETURN(const simulation::PolicyResult now,
                   simulation::Simulate(scene.run, scene.cache, scene.policies.front()));
  suggestion.now_value = simulation::ValueOf(goal, now);
  return suggestion;
}

bool Confirms() {
  std::fputs("Write it? [y/N] ", stderr);
  std::string line;
  std::getline(std::cin, line);
  return line == "y" || line == "yes";
}

std::string CapacityOfSpec(const Json& resource) {
  const Json& capacity = kube::Find(resource, "/spec/cache/capacity");
  return capacity.is_string() ? capacity.get<std::string>() : capacity.dump();
}

Status ApplySuggestion(const SuggestFlags& flags, const FoundCache& found,
                       const std::string& capacity) {
  std::fputs(fmt::format("cache.capacity of the Dataset {}: {} -> {}\n", found.cache.dataset,
                         CapacityOfSpec(found.resource), capacity)
                 .c_str(),
             stderr);
  if (!flags.yes && !Confirms()) return {Code::kCancelled, "nothing was changed"};
  ASSIGN_OR_RETURN(const std::string said,
                   WriteCapacity(Kubectl(flags.kubectl), found.resource, capacity));
  std::fputs(said.c_str(), stderr);
  return OkStatus();
}

Status SuggestCapacity(const SuggestFlags& flags) {
  if (flags.apply && !flags.place.cluster) {
    return {Code::kInvalidArgument,
            "--apply: `optcache up` reads its capacity when it starts. Write it into the file, and "
            "start it again"};
  }
  if (flags.apply && !flags.yes && ::isatty(STDIN_FILENO) == 0)
    return {Code::kInvalidArgument, "--apply asks on a terminal, and there is none: set --yes"};
  ASSIGN_OR_RETURN(const FoundCache found,
                   flags.place.cluster ? FindInCluster(flags) : FindOnMachine(flags));
  ASSIGN_OR_RETURN(const Suggestion suggestion, Suggest(flags, found));
  const std::optional<std::string> capacity = SuggestedCapacity(suggestion);
  std::string text = SuggestionAsText(suggestion);
  const std::optional<std::string> why_not = WhyNotApply(suggestion);
  if (why_not) {
    text += fmt::format("Not to be applied: {}.\n", *why_not);
  } else if (capacity && !flags.apply) {
    text += fmt::format("To apply it, {} cache: {{capacity: {}}} in the Dataset.\n",
                        flags.place.cluster ? "set --apply, or write" : "write", *capacity);
  }
  RETURN_IF_ERROR(PrintAs(flags.output, text, SuggestionAsJson(suggestion)));
  if (!flags.plot.empty())
    RETURN_IF_ERROR(WriteFileAtomically(flags.plot, DrawUntil(suggestion.report)));
  if (!flags.apply) return OkStatus();
  if (!capacity) return {Code::kInvalidArgument, "--apply: there is no capacity to write"};
  if (why_not) return {Code::kInvalidArgument, "--apply: " + *why_not};
  return ApplySuggestion(flags, found, *capacity);
}

Result<std::string> RunForRates(const Kubectl& kubectl, const std::vector<std::string>& arguments) {
  Result<std::string> said = kubectl.Run(arguments);
  if (said || said.error().code() != Code::kPermissionDenied) return said;
  return Error(said.error().code(),
               said.error().message() +
                   "\nTo measure nothing in the cluster, set --store-rate and --job-rate");
}

}  // namespace

Result<std::string> WriteCapacity(const Kubectl& kubectl, const Json& resource,
                                  const std::string& capacity) {
  const std::string path = "/spec/cache/capacity";
  const Json patch =
      Json::array({{{"op", "test"}, {"path", path}, {"value", kube::Find(resource, path)}},
                   {{"op", "replace"}, {"path", path}, {"value", capacity}}});
  const kube::ObjectKey key = kube::KeyOf(resource);
  return kubectl.Run({"patch", "datasets.optcache.io/" + key.name, "--namespace=" + key.ns,
                      "--type=json", "--patch=" + patch.dump()});
}

Result<PagesBySidecar> SidecarPagesInCluster(const Kubectl& kubectl, const RunningCache& cache) {
  std::set<std::string> namespaces;  // the first part of a stream's name
  for (const RunningJob& job : cache.jobs)
    namespaces.insert(job.name.substr(0, job.name.find('/')));
  std::vector<kube::ObjectKey> pods;
  for (const std::string& name_space : namespaces) {
    ASSIGN_OR_RETURN(
        const std::string json,
        RunForRates(kubectl, {"get", "pods", "--namespace=" + name_space, "--output=json"}));
    const Json list = Json::parse(json, nullptr, /*allow_exceptions=*/false);
    for (const Json& pod : kube::Items(list, "/items")) {
      if (kube::TextAt(pod, "/status/phase") != "Running" || SidecarIn(pod) == nullptr) continue;
      const auto datasets = DatasetsOfPod(pod.dump());
      if (std::ranges::find(datasets, cache.dataset, &kube::ObjectKey::ToString) != datasets.end())
        pods.push_back(kube::KeyOf(pod));
    }
  }
  if (pods.empty() || pods.size() > kMaxPagesInCluster) {
    return Error(Code::kInvalidArgument,
                 fmt::format("{} running pods read {}, and rates are measured for 1 to {}: set "
                             "--store-rate and --job-rate",
                             pods.size(), cache.dataset, kMaxPagesInCluster));
  }
  PagesBySidecar pages;
  for (const kube::ObjectKey& pod : pods) {
    ASSIGN_OR_RETURN(const std::string page, RunForRates(kubectl, AboutPage(pod)));
    pages[pod.ToString()] = ParseMetrics(page);
  }
  return pages;
}

void AddPlanSuggest(CLI::App& parent, Action& chosen) {
  const auto flags = std::make_shared<SuggestFlags>();
  CLI::App* const command = parent.add_subcommand(
      "suggest", "Find the least capacity that reaches a goal, for the jobs that read now");
  command->footer(kSuggestMore);
  command->add_option("NAME", flags->name, "The dataset, or the CachePlan; default: the only one")
      ->expected(0, 1);
  command->add_option("--until", flags->until,
                      "The goal: waiting=2% of the time of an epoch after the first, or "
                      "cost=AMOUNT of a whole run; default: spec.goal of the CachePlan");
  command
      ->add_option("--epochs", flags->epochs,
                   "Epochs to simulate, of the job whose epochs take longest; default: 6 for a "
                   "goal of waiting")
      ->check(WholeNumber<std::uint32_t>(1));
  command->add_option("--store-rate", flags->store_rate,
                      "Bytes a second that the store delivers to all jobs together, for example "
                      "500Mi; default: what sidecars have measured");
  command->add_option("--job-rate", flags->job_rate,
                      "Bytes a second that all jobs together read if they never wait; default: as "
                      "they read now, if they hardly wait");
  command->add_option("--measure", flags->measure, "How long that is measured")
      ->check(CLI::Validator(MustBeDuration, ""))
      ->capture_default_str();
  command->add_option("--price-per-request", flags->price_per_request,
                      "Price of a request to the store; default: spec.cost of the Dataset");
  command->add_option("--price-per-gib", flags->price_per_gib,
                      "Price of a GiB that comes from the store; default: spec.cost");
  command->add_option("--manifest", flags->manifest,
                      "In a cluster: the manifest of the Dataset, which has the sizes of samples");
  command->add_option("--plot", flags->plot,
                      "Write an SVG file: waiting or cost over capacity, the least one marked");
  command->add_flag("--apply", flags->apply,
                    "In a cluster: write the capacity into the Dataset, after a question");
  command->add_flag("--yes", flags->yes, "With --apply: do not ask");
  AddPlaceOptions(*command, flags->place);
  AddPlanInClusterFlags(*command, *flags);
  Choose(*command, flags, SuggestCapacity, chosen);
}

}  // namespace optcache::cli
