#pragma once

// `optcache-sidecar warm`: puts samples of one dataset into the node of this machine before a job
// reads them, and says in its termination message what came of it (docs/user/warmup.md).

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "sidecar/programs/warm_choice.h"
#include "sidecar/programs/warmer.h"

namespace optcache::sidecar {

struct WarmFlags {
  std::string name;  // towards the node: that of the pod whose token it has, if it has one
  std::string node;  // "host:port"
  std::vector<std::string> datasets;  // one, as the sidecar has it
  std::vector<std::string> keys;      // likewise, and the next two
  std::vector<std::string> request_rates;
  std::vector<std::string> patiences;
  std::vector<std::string> byte_rates;
  std::string order;               // a recipe, docs/formats/recipe.md; empty: by id
  std::vector<std::string> parts;  // "node1=12Mi", of all that warm it together; empty: all here
  std::string at;                  // the node of this one's part
  std::vector<std::string> manifests;  // URLs of nodes
  std::string token_file;
  std::string node_ca;
  bool encrypt_samples = false;
  std::string ca_file;
  std::uint32_t store_concurrency = 32;
  std::uint64_t timeout_s = 24ULL * 3600;
  bool progress = false;         // a line of JSON on standard output, twice a second and at the end
  std::string termination_file;  // empty: none
};

// One line of JSON, without its end: {"samples":5,"totalSamples":10,...}; with "firstFailure", cut
// to what a termination message holds, if some could not be read.
std::string ProgressLine(const WarmCounts& counts, const Status& first_failure = {});

// Blocks; needs net::BlockStopSignals. The error is a sentence, and stands in the termination
// message, too.
Status RunWarm(const WarmFlags& flags);

}  // namespace optcache::sidecar
