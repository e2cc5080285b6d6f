#pragma once

// Collects what this node gained and lost, and tells the homes in batches.

#include <map>
#include <vector>

#include "base/ids.h"
#include "cache-node/retention/effects.h"
#include "cache/directory.h"
#include "cache/home_map.h"

namespace optcache::node {

// Not thread-safe: the event loop owns it.
class HoldingLog {
 public:
  HoldingLog(wire::DatasetKey dataset, wire::MemberId self, cache::Directory& directory,
             Effects& effects)
      : dataset_(dataset), self_(self), directory_(directory), effects_(effects) {}

  void Gained(SampleId id) { Note(id, true); }
  void Lost(SampleId id) { Note(id, false); }
  // What was not told yet is forgotten: the caller notes all that is here for the new homes.
  void SetHomes(cache::HomeMap homes);
  const cache::HomeMap& homes() const { return homes_; }

  // Sends what has been collected; called at each tick.
  void Flush();

 private:
  void Note(SampleId id, bool gained);

  wire::DatasetKey dataset_;
  wire::MemberId self_;
  cache::Directory& directory_;
  Effects& effects_;
  cache::HomeMap homes_;
  std::map<wire::MemberId, std::map<SampleId, bool>> pending_;  // the last word on each sample
};

}  // namespace optcache::node
