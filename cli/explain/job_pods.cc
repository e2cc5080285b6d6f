#include "cli/explain/job_pods.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/cluster/plan_questions.h"
#include "cli/explain/pod_diagnosis.h"
#include "coordination/revisions.h"

namespace optcache::cli {
namespace {

using kube::Items;
using kube::Json;
using kube::TextAt;

constexpr const char* kOwnerVariable = "OPTCACHE_OWNER";

}  // namespace

std::string StreamOwnerOf(const Json& pod) {
  const Json* const sidecar = SidecarIn(pod);
  if (sidecar == nullptr) return "";
  for (const Json& variable : Items(*sidecar, "/env")) {
    if (TextAt(variable, "/name") == kOwnerVariable) return TextAt(variable, "/value");
  }
  return "";
}

std::set<std::string> JobNamesOf(const Json& pod) {
  std::set<std::string> names;
  for (const char* const label : kJobLabels) {
    if (const auto name = kube::LabelOf(pod, label)) names.insert(*name);
  }
  if (const auto controller = kube::ControllerOf(pod)) {
    names.insert(controller->name);
    // A Deployment's pods are of its ReplicaSet.
    const std::string ending = "-" + kube::LabelOf(pod, "pod-template-hash").value_or("");
    if (ending.size() > 1 && controller->name.ends_with(ending))
      names.insert(controller->name.substr(0, controller->name.size() - ending.size()));
  }
  const std::string stream = "/" + StreamOwnerOf(pod) + "//";
  names.insert(std::string(coordination::JobOf(stream)));
  names.erase("");
  return names;
}

Result<JobName> ParseJobName(std::string_view word) {
  const auto slashes = std::ranges::count(word, '/');
  JobName job;
  if (slashes == 3) {
    job = {.name_space = std::string(coordination::PartsOf(word).name_space),
           .name = std::string(coordination::JobOf(word)),
           .stream = std::string(word)};
  } else if (slashes == 0 || (slashes == 1 && IsObjectName(word.substr(0, word.find('/'))))) {
    job.name = std::string(word.substr(word.find('/') + 1));  // npos + 1 is 0
  }
  const bool is_good =
      IsObjectName(job.name) && (job.stream.empty() || IsObjectName(job.name_space));
  if (is_good) return job;
  return Error(Code::kInvalidArgument,
               fmt::format("'{}' is not a name of a job: write NAME, KIND/NAME, or the name of a "
                           "stream, NAMESPACE/JOB/DATASET/LOADER",
                           word));
}

}  // namespace optcache::cli
