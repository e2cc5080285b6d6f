#pragma once

// What `optcache explain` tells of a stream: the ranks of a job that read a dataset. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster/plan_resource.h"
#include "cli/explain/finding.h"
#include "coordination/status.h"

namespace optcache::cli {

struct ReaderFact {
  std::string name;  // of the stream, "vision/resnet.1a2b3c4d/imagenet/train"
  std::uint64_t ranks = 0;
  std::optional<std::uint64_t> world;  // ranks that it should have; nullopt: not known
  std::uint64_t lost = 0;              // ranks that are known and not heard of
  std::uint64_t pass = 0;
  std::string done;  // of the pass, "42 %"; empty: not known
  std::string rate;  // samples a second; empty: not known
  bool order_known = true;
  std::string conflict;  // what its ranks disagree on
  std::string differs;   // from what the CachePlan says of its job
};

ReaderFact ReaderOf(const PlanJob& job);
ReaderFact ReaderOf(const coordination::StreamStatus& stream);

Finding FindingOnReader(const ReaderFact& reader);

// Of all of them; of the findings that are fine, 8 at most and how many there are more.
void AddFindingsOnReaders(const std::vector<ReaderFact>& readers, std::vector<Finding>& findings);

}  // namespace optcache::cli
