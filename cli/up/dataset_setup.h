#pragma once

// From what the user wrote to what the coordinator and the sidecars need: each dataset's manifest,
// made or found again, and its spec.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/dataset.h"
#include "base/clock.h"
#include "base/result.h"
#include "config/configuration.h"
#include "coordinator/coordinator.h"
#include "dataset/patience.h"

namespace optcache::cli {

struct ReadyDataset {
  coordination::DatasetSpec spec;
  ByteCount guaranteed = 0;  // of the capacity: what it keeps whatever else is read
  std::string manifest_file;
  std::shared_ptr<const std::string> manifest;  // the file's bytes
  std::string store;                            // address: an absolute path or a URL
  std::string keys_folder;                      // absolute; empty: none
  api::Limits limits;                           // of all sidecars together, of others each
  Duration patience = dataset::kPatience;       // of each process
  dataset::StorePrice price;                    // of the store
  ByteCount largest = 0;                        // bytes of its largest sample
  std::string order;               // recipe of the plan's first job, for a warm-up; empty: none
  std::vector<std::string> notes;  // what the user asked for and does not get
};

struct SetupOptions {
  std::string state_dir;  // manifests are kept in <state_dir>/manifests
  std::string ca_file;    // certificates to trust instead of the system's
  // Of what store, by the dataset's qualified name: see storage/open_store.h.
  std::map<std::string, std::string> keys_folders{};
  bool reindex = false;   // replace manifests that are there already
  bool has_disk = false;  // nodes have one
  std::function<void(const std::string&)> say;
};

// All of `files` as one configuration; kInvalidArgument names file and line, or says that there is
// no dataset.
Result<config::Configuration> ReadConfiguration(const std::vector<std::string>& files);

// Indexes the source unless a manifest of the same source is there. The error names the dataset.
Result<ReadyDataset> SetUpDataset(const config::Dataset& dataset, const config::CachePlan& plan,
                                  const SetupOptions& options);

}  // namespace optcache::cli
