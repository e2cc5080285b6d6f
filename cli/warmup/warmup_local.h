#pragma once

// Warms a dataset of an `optcache up` on this machine: one `optcache-sidecar warm` for each of its
// nodes.

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "cli/up/local_sources.h"
#include "coordination/status.h"

namespace optcache::cli {

struct LocalWarmup {
  std::string dataset;      // "images", or "default/images"
  std::string state_dir;    // of that `optcache up`
  std::string coordinator;  // address
  ByteCount bandwidth = 0;  // bytes a second of all together; 0: no limit
  std::string output = "text";
};

// The command line of each process; kNotFound: the coordinator does not know the dataset, or has no
// node; kResourceExhausted: nodes grant it nothing.
Result<std::vector<std::vector<std::string>>> WarmCommands(
    const std::string& program, const LocalSource& source, const std::string& ca_file,
    const coordination::ClusterStatus& status, ByteCount bandwidth, const std::string& end_files);

// Shows how far it is, and says what came of it; Ctrl-C ends it.
Status WarmHere(const LocalWarmup& warmup);

}  // namespace optcache::cli
