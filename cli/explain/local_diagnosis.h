#pragma once

// What `optcache explain dataset` and `job` tell of a cache on one machine, from the status of its
// coordinator and the pages of its sidecars. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/explain/finding.h"
#include "cli/explain/training_limit.h"
#include "coordination/status.h"

namespace optcache::cli {

// What was seen of a cache.
struct LocalAnswers {
  coordination::ClusterStatus status;
  std::vector<PageLooks> pages{};  // of its sidecars
  std::size_t silent_pages = 0;    // that did not answer
};

// `name` with or without its namespace. Errors as of FindDataset.
Result<Explanation> ExplainLocalDataset(const LocalAnswers& answers, std::string_view name);

// `name` is a stream's, or its part that names the job. kNotFound: there is none, and the
// message says which there are; if loaders have that name, it says of which streams.
Result<Explanation> ExplainLocalJob(const LocalAnswers& answers, std::string_view name);

}  // namespace optcache::cli
