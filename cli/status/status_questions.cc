#include "cli/status/status_questions.h"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/cluster/cluster_questions.h"

namespace optcache::cli {
namespace {

// Empty if it could not be had, and `notes` say so.
std::string AskOrNote(const Kubectl& kubectl, const std::vector<std::string>& arguments,
                      std::string_view what, std::vector<std::string>& notes) {
  Result<std::string> answer = kubectl.Run(arguments);
  if (answer) return *std::move(answer);
  notes.push_back(fmt::format("{} cannot be shown: {}", what, answer.error().message()));
  return "";
}

}  // namespace

Result<ClusterAnswers> AskCluster(const Kubectl& kubectl, const std::string& name_space) {
  Result<std::string> resources = kubectl.Run(
      {"get", "datasets.optcache.io,cacheplans.optcache.io",
       name_space.empty() ? "--all-namespaces" : "--namespace=" + name_space, "--output=json"});
  if (!resources) {
    Status error = ExplainMissing(std::move(resources).error());
    if (error.code() != Code::kPermissionDenied || !name_space.empty())
      return std::unexpected(error);
    return Error(error.code(), error.message() + "\nTry --namespace NAMESPACE: one that is yours");
  }
  ClusterAnswers answers{.resources = *std::move(resources)};
  answers.pods =
      AskOrNote(kubectl, {"get", "pods", "--all-namespaces", kOurObjects, "--output=json"}, "pods",
                answers.notes);
  for (const std::string& ns : OperatorNamespaces(answers.pods)) {
    answers.leases.push_back(AskOrNote(
        kubectl, {"get", "leases.coordination.k8s.io", "--namespace=" + ns, "--output=json"},
        "the leader", answers.notes));
  }
  return answers;
}

}  // namespace optcache::cli
