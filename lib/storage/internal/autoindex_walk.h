#pragma once

#include <functional>
#include <string>

#include "storage/internal/page_retries.h"
#include "storage/object_store.h"

namespace optcache::storage::internal {

inline constexpr size_t kAutoindexFoldersMax = 1'000'000;

struct AutoindexWalkOptions {
  std::string base_path;  // of the source's root on its server, percent-encoded, ends with a slash
  unsigned concurrent_max = 8;
  PageRetryOptions pages;  // its deadline is that of all
  ListProgress progress;   // may be empty
};

// Lists a tree of folders by the pages that show them. `fetch` gets the page of a folder, "" or
// "a/b/", and may block; it is called on several threads. Objects are sorted by path and have no
// info. A page that fails is asked for again; the first that cannot be had ends it, as a dataset
// with holes helps nobody. kInvalidArgument: a path is too long for a manifest, or there are more
// than kAutoindexFoldersMax folders.
Result<ObjectListing> WalkAutoindex(
    const AutoindexWalkOptions& options,
    const std::function<Result<std::string>(const std::string& folder)>& fetch, const Clock& clock);

}  // namespace optcache::storage::internal
