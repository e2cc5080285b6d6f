#pragma once

// Where `optcache up` reads each dataset, left in its state folder for `optcache warmup`.

#include <string>
#include <string_view>
#include <vector>

#include "api/dataset.h"
#include "base/clock.h"
#include "base/result.h"
#include "dataset/patience.h"

namespace optcache::cli {

struct LocalSource {
  std::string name;           // "namespace/name"
  std::string manifest_file;  // absolute
  std::string store;          // address; keys are not in it
  std::string order;          // recipe of the first job that its CachePlan names; empty: none
  std::string keys_folder;    // absolute; empty: none
  api::Limits limits;         // of each process that reads it
  Duration patience = dataset::kPatience;  // likewise
  friend bool operator==(const LocalSource&, const LocalSource&) = default;
};

struct LocalSources {
  std::string ca_file;  // to trust instead of the system's certificates; empty: none
  std::vector<LocalSource> datasets;
  friend bool operator==(const LocalSources&, const LocalSources&) = default;
};

// As JSON, and back: kInvalidArgument if it is not that.
std::string ToJson(const LocalSources& sources);
Result<LocalSources> ParseLocalSources(std::string_view json);

// Into the state folder and out of it. kNotFound: no `optcache up` runs there.
Status WriteLocalSources(const std::string& state_dir, const LocalSources& sources);
Result<LocalSources> ReadLocalSources(const std::string& state_dir);
void RemoveLocalSources(const std::string& state_dir);

}  // namespace optcache::cli
