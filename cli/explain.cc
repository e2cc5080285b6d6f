#include "cli/explain.h"

#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/cluster_questions.h"
#include "cli/pod_story.h"
#include "cli/print.h"
#include "cli/yaml_text.h"

namespace optcache::cli {
namespace {

struct ExplainRequest {
  KubectlOptions kubectl;
  std::string name_space;
  std::string pod;
  std::string output = "text";
};

Status ExplainPod(const ExplainRequest& request) {
  ASSIGN_OR_RETURN(const PodAnswers answers,
                   AskAboutPod(Kubectl(request.kubectl), request.name_space, request.pod));
  ASSIGN_OR_RETURN(const PodStory story, TellPodStory(answers));
  std::string text;
  if (request.output == "text") text = FormatPodStory(story);
  if (request.output == "json") text = ToJson(story);
  if (request.output == "yaml") text = ToYaml(ToJson(story));
  return cli::Print(text);
}

}  // namespace

void AddExplainCommand(CLI::App& app, Verb& chosen) {
  CLI::App* const command = app.add_subcommand(
      "explain", "Explain why a pod was or was not injected, and where its samples came from");
  command->require_subcommand(1);
  CLI::App* const pod = command->add_subcommand(
      "pod", "Explain one pod: its injection, its machine, and the sources of its samples");
  const auto request = std::make_shared<ExplainRequest>();
  pod->add_option("NAME", request->pod, "Name of the pod")->required();
  pod->add_option("--namespace,-n", request->name_space,
                  "Namespace of the pod; default: that of kubectl's context");
  pod->add_option("--output,-o", request->output, "text, json or yaml")
      ->check(CLI::IsMember({"text", "json", "yaml"}))
      ->capture_default_str();
  AddKubectlOptions(*pod, request->kubectl);
  pod->footer("Example:\n  kubectl optcache explain pod train-0-x7k2p -n vision");
  pod->callback([request, &chosen] { chosen = [request] { return ExplainPod(*request); }; });
}

}  // namespace optcache::cli
