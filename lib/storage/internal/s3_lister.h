#pragma once

// Lists a bucket by many requests at a time. ListObjectsV2 gives 1,000 keys a request and each
// request begins where the one before ended, so one after the other takes minutes for millions.
// Here a range of keys that turns out long is cut at folders below it, which a request with a
// delimiter names, or where a folder is long, at guesses (guessed_cuts.h), and idle threads take
// the pieces. Cuts are hints: whatever they are, each key is in one range. A server may refuse to
// begin at a guess; then the piece goes back (open_guesses.h).

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "storage/internal/page_retries.h"
#include "storage/object_store.h"
#include "storage/s3_listing.h"

namespace optcache::storage::internal {

struct S3PageRequest {
  std::string prefix;
  std::string start_after;  // keys and common prefixes above it; empty: from the first
  std::string token{};      // of the page before this one, if it was empty; then this counts
  bool roll_up = false;     // what follows the next slash, as common prefixes
};

// Of pages in a row that are empty and say that there is more, as of a bucket in which millions of
// objects were deleted and older versions are kept.
inline constexpr unsigned kS3EmptyPagesMax = 100'000;

// Asks for one page; called from several threads at once.
using S3PageSource = std::function<Result<S3Page>(const S3PageRequest& request)>;

struct S3ListOptions {
  std::string prefix;  // empty, or ends with a slash; paths are what follows it
  unsigned concurrent_max = 16;
  size_t keys_per_page = 1000;  // a piece that promises fewer is not worth a thread
  PageRetryOptions pages;       // its deadline is that of all
  ListProgress progress;        // may be empty
};

// All objects below the prefix, by path. Keys that end with a slash are folders, as consoles make
// them, and no objects. kNotFound if there is nothing; kInvalidArgument: a server that does not
// list in order; otherwise the error of `fetch`. Blocks.
Result<ObjectListing> ListBucket(const S3ListOptions& options, const S3PageSource& fetch,
                                 const Clock& clock);

}  // namespace optcache::storage::internal
