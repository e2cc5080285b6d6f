// The subcommand explain: chooses what is asked of whom, and prints the diagnosis.
//
// The idea: asking and telling are apart. explain_questions.cc asks a cluster and AskLocal asks an
// `optcache up`; dataset_diagnosis.cc, job_diagnosis.cc, pod_diagnosis.cc and local_diagnosis.cc
// turn the answers into findings and touch nothing. As a plugin of kubectl the command asks the
// cluster; else it asks this machine, unless --cluster is given. Pages of sidecars are read twice,
// as a rate needs two looks.

#include "cli/explain/explain.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/cluster/cluster_questions.h"
#include "cli/explain/explain_questions.h"
#include "cli/explain/local_diagnosis.h"
#include "cli/explain/page_looks.h"
#include "cli/explain/pod_diagnosis.h"
#include "cli/explain/pod_questions.h"
#include "cli/local/cache_place.h"
#include "cli/local/coordinator_status.h"
#include "cli/terminal/choose.h"
#include "cli/terminal/print.h"

namespace optcache::cli {
namespace {

constexpr const char* kDatasetMore =
    R"(Tells whether the dataset is indexed, whether its source answers, where it is placed, how much memory it has, which
plan is in force, which jobs read it, how many reads came from the cache, and what that saved. Each finding begins with
fault, warning or ok, faults first. The line below a finding says what to do. The exit status is 0 also if there are
faults; it is 1 if there is no such dataset.

Examples:
  Find out why a Dataset is not Ready:
    kubectl optcache explain dataset imagenet -n vision
  The same on one machine, for a cache of `optcache up`:
    optcache explain dataset imagenet
  Read the findings in a script:
    kubectl optcache explain dataset imagenet -n vision -o json)";

constexpr const char* kJobMore =
    R"(Tells which pods the job has, which of them have the sidecar, whether its Datasets are Ready, which ranks are attached
and whether their order is known, where the samples came from, how long training waited, and what limits it now. It looks
at the sidecars' pages twice, 2 s apart. NAME is a Job or another controller of pods, also as KIND/NAME, or the name of a
stream as `optcache status` shows it. At most 64 pods and the pages of 16 sidecars are looked at, and it takes at most
60 s. On one machine, the samples and the limit are those of all jobs of the cache together.

Examples:
  Find out why a job is slow:
    kubectl optcache explain job train -n vision
  The same for a PyTorchJob:
    kubectl optcache explain job pytorchjob/train -n vision
  A stream on one machine, for a cache of `optcache up`:
    optcache explain job default/local/imagenet/train
  Read the findings in a script:
    kubectl optcache explain job train -n vision -o json)";

constexpr Duration kPagePatience = std::chrono::seconds(5);

struct ExplainRequest {
  KubectlOptions kubectl;
  std::string name_space;
  std::string name;
  std::string output = "text";
  CachePlace place;
};

Status PrintExplanation(const ExplainRequest& request, const Explanation& explanation) {
  return PrintAs(request.output, ExplanationAsText(explanation), ExplanationAsJson(explanation));
}

Status ExplainPod(const ExplainRequest& request) {
  ASSIGN_OR_RETURN(const PodAnswers answers,
                   AskAboutPod(Kubectl(request.kubectl), request.name_space, request.name));
  ASSIGN_OR_RETURN(const PodDiagnosis diagnosis, DiagnosePod(answers));
  return PrintAs(request.output, FormatPodDiagnosis(diagnosis), ToJson(diagnosis));
}

Result<LocalAnswers> AskLocal(const ExplainRequest& request, bool with_pages) {
  ASSIGN_OR_RETURN(const std::string url, FindCoordinator(request.place));
  ASSIGN_OR_RETURN(CoordinatorAnswer answer, AskCoordinator(url));
  LocalAnswers answers{.status = std::move(answer.status)};
  if (!with_pages) return answers;
  for (Result<PageLooks>& looks : LookTwice(SidecarUrls(answers.status), kPagePatience)) {
    if (looks) {
      answers.pages.push_back(*std::move(looks));
    } else {
      ++answers.silent_pages;
    }
  }
  return answers;
}

Status ExplainOneDataset(const ExplainRequest& request) {
  if (request.place.cluster) {
    ASSIGN_OR_RETURN(const DatasetAnswers answers,
                     AskAboutDataset(request.kubectl, request.name_space, request.name));
    ASSIGN_OR_RETURN(const Explanation explanation, ExplainDataset(answers));
    return PrintExplanation(request, explanation);
  }
  ASSIGN_OR_RETURN(const LocalAnswers answers, AskLocal(request, /*with_pages=*/false));
  ASSIGN_OR_RETURN(const Explanation explanation, ExplainLocalDataset(answers, request.name));
  return PrintExplanation(request, explanation);
}

Status ExplainOneJob(const ExplainRequest& request) {
  if (request.place.cluster) {
    const Wait wait = [](Duration time) {
      std::this_thread::sleep_for(time);
      return true;
    };
    ASSIGN_OR_RETURN(const JobAnswers answers, AskAboutJob(request.kubectl, request.name_space,
                                                           request.name, kBetweenLooks, wait));
    ASSIGN_OR_RETURN(const Explanation explanation, ExplainJob(answers));
    return PrintExplanation(request, explanation);
  }
  ASSIGN_OR_RETURN(const LocalAnswers answers, AskLocal(request, /*with_pages=*/true));
  ASSIGN_OR_RETURN(const Explanation explanation, ExplainLocalJob(answers, request.name));
  return PrintExplanation(request, explanation);
}

void AddExplainOptions(CLI::App& command, ExplainRequest& request, const std::string& what) {
  command.add_option("NAME", request.name, "Name of the " + what)->required();
  command.add_option("--namespace,-n", request.name_space,
                     "Namespace of the " + what + "; default: that of kubectl's context");
  command.add_option("--output,-o", request.output, "text, json or yaml")
      ->check(CLI::IsMember({"text", "json", "yaml"}))
      ->capture_default_str();
  AddKubectlOptions(command, request.kubectl);
}

}  // namespace

void AddExplainCommand(CLI::App& app, Action& chosen) {
  CLI::App* const command =
      app.add_subcommand("explain", "Explain why a dataset, a job or a pod is not served or slow");
  command->require_subcommand(1);

  CLI::App* const dataset = command->add_subcommand(
      "dataset", "Explain why a dataset is not ready or slow, and what to do");
  const auto of_dataset = std::make_shared<ExplainRequest>();
  AddExplainOptions(*dataset, *of_dataset, "dataset");
  AddPlaceOptions(*dataset, of_dataset->place);
  dataset->footer(kDatasetMore);
  Choose(*dataset, of_dataset, ExplainOneDataset, chosen);

  CLI::App* const job = command->add_subcommand(
      "job", "Explain where a job's samples came from, what limits it, and what to do");
  const auto of_job = std::make_shared<ExplainRequest>();
  AddExplainOptions(*job, *of_job, "job");
  AddPlaceOptions(*job, of_job->place);
  job->footer(kJobMore);
  Choose(*job, of_job, ExplainOneJob, chosen);

  CLI::App* const pod = command->add_subcommand(
      "pod", "Explain one pod: its injection, its machine, and the sources of its samples");
  const auto of_pod = std::make_shared<ExplainRequest>();
  AddExplainOptions(*pod, *of_pod, "pod");
  pod->footer("Example:\n  kubectl optcache explain pod train-0-x7k2p -n vision");
  Choose(*pod, of_pod, ExplainPod, chosen);
}

}  // namespace optcache::cli
