// Asks a cluster what the diagnoses of Datasets and jobs need.
//
// The idea: Asker has one deadline for all questions, and each answer that cannot be had becomes a
// finding that names the right that is missing, or what failed. Only the question without which
// there is no diagnosis is an error. Pods of a job are sought by each label that a controller of
// jobs sets, and if none finds any, among all pods of the namespace, of which at most
// kMaxPodsListed are read. The number of pods, and of sidecars whose page is asked, has a limit,
// and a finding says what was left out. Begin to read at AskAboutDataset and AskAboutJob, at the
// end.

#include "cli/explain/explain_questions.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/cluster/cluster_questions.h"
#include "cli/cluster/plan_questions.h"
#include "kube/object.h"

namespace optcache::cli {
namespace {

using kube::Items;
using kube::Json;
using kube::KeyOf;
using kube::TextAt;
using Words = std::vector<std::string>;

constexpr std::size_t kPodsPerPage = 500;
constexpr std::size_t kMaxNamesShown = 10;

// What a question needs, as `kubectl auth can-i` takes it: "list pods -n vision".
struct ExplainQuestion {
  std::string what;
  Words words;
  std::string right;
};

// Asks until the time is over. Not thread-safe: a value with one owner.
class Asker {
 public:
  explicit Asker(const KubectlOptions& options)
      : options_(options), deadline_(Deadline::After(SystemClock(), kExplainPatience)) {}

  Result<std::string> Run(const Words& words) {
    const Duration left = deadline_.Remaining(SystemClock().Now());
    if (left == Duration::zero()) {
      return Error(
          Code::kDeadlineExceeded,
          fmt::format("the {} s for all questions are over",
                      std::chrono::duration_cast<std::chrono::seconds>(kExplainPatience).count()));
    }
    KubectlOptions options = options_;
    options.timeout = std::min(options.timeout, left);
    return Kubectl(options).Run(words);
  }

  // nullopt, and a finding more, if it could not be had.
  std::optional<std::string> Ask(const ExplainQuestion& question) {
    Result<std::string> answer = Run(question.words);
    if (answer) return *std::move(answer);
    if (SaysMissing(answer.error())) missing_ = ExplainMissing(answer.error());
    const bool forbidden = answer.error().code() == Code::kPermissionDenied;
    unseen_.push_back(
        Warn(forbidden ? "your rights" : "not seen",
             fmt::format("{} cannot be shown: {}", question.what, answer.error().message()),
             forbidden
                 ? "Ask for this right. To check it, run: kubectl auth can-i " + question.right
                 : "Run the command again. If it fails again, check the cluster: kubectl version"));
    return std::nullopt;
  }

  std::vector<Finding> TakeUnseen() { return std::move(unseen_); }
  // That optcache is not installed, if an answer said so.
  const Status& missing() const { return missing_; }

 private:
  KubectlOptions options_;
  Deadline deadline_;
  std::vector<Finding> unseen_;
  Status missing_;
};

ExplainQuestion AboutPlansIn(const std::string& ns) {
  return {.what = "CachePlans of namespace " + ns,
          .words = {"get", "cacheplans.optcache.io", "--namespace=" + ns, "--output=json"},
          .right = "list cacheplans.optcache.io -n " + ns};
}

// `about` is a field selector.
ExplainQuestion AboutEventsOf(const std::string& about, const kube::ObjectKey& key) {
  return {.what = "Events of namespace " + key.ns,
          .words = {"get", "events", "--namespace=" + key.ns,
                    fmt::format("--field-selector={}involvedObject.name={}", about, key.name),
                    "--output=json"},
          .right = "list events -n " + key.ns};
}

ExplainQuestion NodePodsQuestion() {
  return {.what = "the nodes of the cache", .words = AboutNodePods(), .right = "list pods -A"};
}

// That of the user's context.
std::string OwnNamespace(Asker& asker) {
  const Result<std::string> ns =
      asker.Run({"config", "view", "--minify", "--output=jsonpath={..namespace}"});
  return ns && IsObjectName(*ns) ? *ns : "default";
}

Status CheckNamespace(const std::string& ns) {
  if (IsObjectName(ns)) return OkStatus();
  return {Code::kInvalidArgument, fmt::format("'{}' is not a name of a namespace", ns)};
}

std::string SomeNames(const std::set<std::string>& names) {
  std::string text;
  std::size_t shown = 0;
  for (const std::string& name : names) {
    if (shown == kMaxNamesShown) break;
    text += (shown++ == 0 ? "" : ", ") + name;
  }
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

Status NoDataset(Asker& asker, const std::string& ns, const std::string& name) {
  std::string text = fmt::format("there is no Dataset {} in namespace {}", name, ns);
  Result<std::string> list =
      asker.Run({"get", "datasets.optcache.io", "--all-namespaces", "--output=json"});
  if (!list)
    list = asker.Run({"get", "datasets.optcache.io", "--namespace=" + ns, "--output=json"});
  if (!list) return {Code::kNotFound, text};
  std::set<std::string> here;
  const Json parsed = Json::parse(*list, nullptr, /*allow_exceptions=*/false);
  for (const Json& item : Items(parsed, "/items")) {
    const kube::ObjectKey key = KeyOf(item);
    if (key.ns == ns) here.insert(key.name);
    if (key.name == name)
      return {Code::kNotFound, fmt::format("{0}, but in namespace {1}: add -n {1}", text, key.ns)};
  }
  if (here.empty()) return {Code::kNotFound, text + "; this namespace has no Dataset"};
  return {Code::kNotFound, fmt::format("{}; there are: {}", text, SomeNames(here))};
}

struct ListedPods {
  std::vector<Json> pods;        // of the job
  std::set<std::string> others;  // names of other jobs
  bool is_cut = false;
};

// Page by page; empty `selector`: all of the namespace.
Result<ListedPods> ListPods(Asker& asker, const JobName& job, const std::string& selector) {
  ListedPods listed;
  std::string next;
  for (std::size_t seen = 0; seen < kMaxPodsListed; seen += kPodsPerPage) {
    ASSIGN_OR_RETURN(const std::string text,
                     asker.Run({"get", "--raw",
                                fmt::format("/api/v1/namespaces/{}/pods?limit={}{}{}",
                                            job.name_space, kPodsPerPage, selector, next)}));
    ASSIGN_OR_RETURN(const Json page, kube::ParseList(text, "the answer about pods"));
    for (const Json& pod : Items(page, "/items")) {
      const std::set<std::string> names = JobNamesOf(pod);
      if (names.contains(job.name)) {
        listed.pods.push_back(pod);
      } else if (!names.empty()) {
        listed.others.insert(*names.begin());
      }
    }
    const std::string mark = TextAt(page, "/metadata/continue");
    if (mark.empty()) return listed;
    next = "&continue=" + mark;
  }
  listed.is_cut = true;
  return listed;
}

// First those that one of the labels selects: there may be many pods of others.
std::optional<ListedPods> FindPods(Asker& asker, const JobName& job, JobAnswers& answers) {
  Result<ListedPods> listed = ListedPods{};
  for (const std::string_view label : kJobLabels) {
    if (!listed || !listed->pods.empty()) break;
    std::string escaped(label);
    if (const std::size_t slash = escaped.find('/'); slash != std::string::npos)
      escaped.replace(slash, 1, "%2F");
    listed = ListPods(asker, job, fmt::format("&labelSelector={}%3D{}", escaped, job.name));
  }
  if (listed && listed->pods.empty()) listed = ListPods(asker, job, "");
  if (listed) {
    if (listed->is_cut) {
      answers.unseen.push_back(
          Warn("pods",
               fmt::format("only the first {} pods of namespace {} were looked at", kMaxPodsListed,
                           job.name_space),
               "Explain one pod: kubectl optcache explain pod NAME -n " + job.name_space));
    }
    return *std::move(listed);
  }
  const bool forbidden = listed.error().code() == Code::kPermissionDenied;
  answers.unseen.push_back(Warn(forbidden ? "your rights" : "not seen",
                                fmt::format("the pods of namespace {} cannot be shown: {}",
                                            job.name_space, listed.error().message()),
                                fmt::format("{}kubectl auth can-i list pods -n {}",
                                            forbidden ? "Ask for this right. To check it, run: "
                                                      : "Check that the cluster answers: ",
                                            job.name_space)));
  return std::nullopt;
}

// Those that have not ended come first.
void AskAboutPods(Asker& asker, std::vector<Json> pods, JobAnswers& answers) {
  std::ranges::stable_partition(pods, [](const Json& pod) {
    const std::string phase = TextAt(pod, "/status/phase");
    return phase != "Succeeded" && phase != "Failed";
  });
  const std::size_t told = std::min(pods.size(), kMaxPodsTold);
  answers.more_pods = pods.size() - told;
  if (pods.empty()) return;
  const std::optional<std::string> node_pods = asker.Ask(NodePodsQuestion());
  const std::optional<std::string> injectors =
      asker.Ask({.what = "the injector",
                 .words = AboutInjectors(),
                 .right = "list mutatingwebhookconfigurations"});
  std::map<kube::ObjectKey, std::optional<std::string>> datasets;
  for (std::size_t i = 0; i < told; ++i) {
    PodAnswers& pod = answers.pods.emplace_back();
    pod = {.pod = pods[i].dump(-1, ' ', false, Json::error_handler_t::replace),
           .datasets = {},
           .node_pods = node_pods,
           .injectors = injectors,
           .metrics = std::nullopt};
    for (const kube::ObjectKey& key : DatasetsOfPod(pod.pod)) {
      const auto [known, is_new] = datasets.try_emplace(key);
      if (is_new) {
        known->second = asker.Ask({.what = "Dataset " + key.ToString(),
                                   .words = AboutDataset(key),
                                   .right = "get datasets.optcache.io -n " + key.ns});
      }
      pod.datasets.push_back({.name = key.ToString(), .json = known->second});
    }
  }
}

bool HasPage(const PodAnswers& pod) {
  const Json object = Json::parse(pod.pod, nullptr, /*allow_exceptions=*/false);
  return TextAt(object, "/status/phase") == "Running" && !StreamOwnerOf(object).empty();
}

struct Page {
  std::string text;
  MonotonicTime at;
};

std::optional<Page> AskForPage(Asker& asker, const PodAnswers& pod) {
  const Json object = Json::parse(pod.pod, nullptr, /*allow_exceptions=*/false);
  Result<std::string> text = asker.Run(AboutPage(KeyOf(object)));
  if (!text) return std::nullopt;
  return Page{.text = *std::move(text), .at = SystemClock().Now()};
}

void AskForPages(Asker& asker, Duration between, const Wait& wait, JobAnswers& answers) {
  std::vector<std::pair<PodAnswers*, Page>> first;
  std::size_t asked = 0;
  for (PodAnswers& pod : answers.pods) {
    if (!HasPage(pod) || ++asked > kMaxPagesAsked) continue;
    if (auto page = AskForPage(asker, pod)) {
      pod.metrics = page->text;
      first.emplace_back(&pod, *std::move(page));
    } else {
      ++answers.silent_pages;
    }
  }
  if (asked > kMaxPagesAsked) {
    answers.unseen.push_back(
        Fine("metrics",
             fmt::format("the pages of {} of {} sidecars were looked at", kMaxPagesAsked, asked)));
  }
  if (first.empty() || !wait(between)) return;
  for (auto& [pod, before] : first) {
    auto after = AskForPage(asker, *pod);
    if (!after) continue;
    answers.pages.push_back({.before = ParseMetrics(before.text),
                             .after = ParseMetrics(after->text),
                             .seconds = ToSeconds(after->at - before.at)});
    pod->metrics = std::move(after->text);
  }
}

bool KnowsStreamOf(const JobAnswers& answers) {
  const std::string start = "\"" + answers.job.name_space + "/" + answers.job.name;
  return std::ranges::any_of(answers.plans, [&](const std::string& plans) {
    return plans.contains(start + "/") || plans.contains(start + ".");
  });
}

}  // namespace

Result<DatasetAnswers> AskAboutDataset(const KubectlOptions& options, const std::string& name_space,
                                       const std::string& name) {
  if (!IsObjectName(name)) {
    return Error(
        Code::kInvalidArgument,
        fmt::format("'{}' is not a name of a Dataset: it takes a-z, 0-9, - and dots", name));
  }
  Asker asker(options);
  const std::string ns = name_space.empty() ? OwnNamespace(asker) : name_space;
  RETURN_IF_ERROR(CheckNamespace(ns));
  const kube::ObjectKey key{.ns = ns, .name = name};
  Result<std::string> dataset = asker.Run(AboutDataset(key));
  if (!dataset && dataset.error().code() == Code::kPermissionDenied) {
    return Error(Code::kPermissionDenied,
                 fmt::format("{}\nAsk for this right. To check it, run: kubectl auth can-i get "
                             "datasets.optcache.io -n {}",
                             dataset.error().message(), ns));
  }
  if (!dataset) return std::unexpected(ExplainMissing(std::move(dataset).error()));
  if (dataset->empty()) return std::unexpected(NoDataset(asker, ns, name));
  DatasetAnswers answers{.dataset = *std::move(dataset)};
  answers.plans = asker.Ask(AboutPlansIn(ns));
  answers.warmups =
      asker.Ask({.what = "Warmups of namespace " + ns,
                 .words = {"get", "warmups.optcache.io", "--namespace=" + ns, "--output=json"},
                 .right = "list warmups.optcache.io -n " + ns});
  answers.node_pods = asker.Ask(NodePodsQuestion());
  answers.events = asker.Ask(AboutEventsOf("involvedObject.kind=Dataset,", key));
  answers.unseen = asker.TakeUnseen();
  return answers;
}

Result<JobAnswers> AskAboutJob(const KubectlOptions& options, const std::string& name_space,
                               std::string_view word, Duration between, const Wait& wait) {
  ASSIGN_OR_RETURN(JobName job, ParseJobName(word));
  Asker asker(options);
  if (job.name_space.empty())
    job.name_space = name_space.empty() ? OwnNamespace(asker) : name_space;
  RETURN_IF_ERROR(CheckNamespace(job.name_space));
  JobAnswers answers{.job = job};
  const std::string& ns = job.name_space;
  answers.batch_job = asker.Ask({.what = "Job " + job.name,
                                 .words = {"get", "jobs.batch/" + job.name, "--namespace=" + ns,
                                           "--ignore-not-found", "--output=json"},
                                 .right = "get jobs.batch -n " + ns});
  const std::optional<ListedPods> listed = FindPods(asker, job, answers);
  answers.has_all_pods = listed && !listed->is_cut;
  if (listed) AskAboutPods(asker, listed->pods, answers);
  AskForPages(asker, between, wait, answers);
  for (const std::string& each : PlanNamespacesOf(answers)) {
    if (auto plans = asker.Ask(AboutPlansIn(each))) answers.plans.push_back(*std::move(plans));
  }
  RETURN_IF_ERROR(asker.missing());
  const bool no_job = answers.batch_job && answers.batch_job->empty();
  if (no_job && listed && listed->pods.empty() && !KnowsStreamOf(answers)) {
    return Error(
        Code::kNotFound,
        fmt::format(
            "there is no job {} in namespace {}: no Job of that name, no pod of it "
            "and no stream{}",
            job.name, ns,
            listed->others.empty() ? "" : "; there are pods of: " + SomeNames(listed->others)));
  }
  answers.events = asker.Ask(AboutEventsOf("", {.ns = ns, .name = job.name}));
  std::ranges::move(asker.TakeUnseen(), std::back_inserter(answers.unseen));
  return answers;
}

}  // namespace optcache::cli
