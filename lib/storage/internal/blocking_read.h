#pragma once

#include <future>
#include <memory>
#include <utility>

#include "storage/object_store.h"

namespace optcache::storage::internal {

// Reads and waits; the store ends the read at about its deadline. Not from a callback.
inline Status ReadAndWait(ObjectStore& store, ReadRequest request) {
  // Shared: the store's thread may still be within set_value when this one goes on.
  const auto ended = std::make_shared<std::promise<Status>>();
  std::future<Status> outcome = ended->get_future();
  RETURN_IF_ERROR(store.Read(
      std::move(request), [ended](ReadOutcome read) { ended->set_value(std::move(read.status)); }));
  return outcome.get();
}

}  // namespace optcache::storage::internal
