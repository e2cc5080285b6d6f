#pragma once

#include <functional>
#include <string>

#include "storage/object_store.h"

namespace optcache::storage::internal {

struct StatManyOptions {
  size_t count = 0;  // objects to ask for, numbered from 0
  unsigned concurrent_max = 32;
  Deadline deadline;
};

// Asks `store` for many objects, several at a time, and gives each answer to `take`: the info, or
// kNotFound. The first other error ends it and is returned. `take` and `report` (with the number of
// objects asked for so far, now and then) run on several threads at once; blocks until all are
// done.
Status StatMany(ObjectStore& store, const StatManyOptions& options,
                const std::function<std::string(size_t index)>& path_of,
                const std::function<void(size_t index, Result<ObjectInfo>)>& take,
                const std::function<void(size_t done)>& report);

}  // namespace optcache::storage::internal
