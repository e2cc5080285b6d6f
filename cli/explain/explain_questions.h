#pragma once

// What `kubectl optcache explain dataset` and `job` ask of a cluster: by kubectl, with the rights
// of the user.

#include <string>
#include <string_view>

#include "cli/cluster/kubectl.h"
#include "cli/explain/dataset_diagnosis.h"
#include "cli/explain/job_diagnosis.h"
#include "cli/terminal/stop_wait.h"

namespace optcache::cli {

// All questions together. What is not answered by then is left out, and a finding says so.
inline constexpr Duration kExplainPatience = std::chrono::seconds(60);

// Of one job.
inline constexpr std::size_t kMaxPodsListed =
    2000;  // of its namespace, where no label selects them
inline constexpr std::size_t kMaxPodsTold = 64;
inline constexpr std::size_t kMaxPagesAsked = 16;

// `name_space` may be empty: kubectl's own. kNotFound: there is no such Dataset, and the message
// says which there are; kInvalidArgument: no Dataset can have that name.
Result<DatasetAnswers> AskAboutDataset(const KubectlOptions& options, const std::string& name_space,
                                       const std::string& name);

// `word` is a name as ParseJobName takes it. Looks at the pages of sidecars twice, and waits
// `between`. kNotFound: there is no pod and no Job of that name; the message says which jobs there
// are.
Result<JobAnswers> AskAboutJob(const KubectlOptions& options, const std::string& name_space,
                               std::string_view word, Duration between, const Wait& wait);

}  // namespace optcache::cli
