#pragma once

// The text file by which a plain web server lists a dataset.

#include <string_view>

#include "storage/object_store.h"

namespace optcache::storage {

// One object a line: its path as it is (not percent-encoded), then, if known, its size in bytes and
// its ETag as the server sends it, in quotes, separated by tabs. Empty lines do not count; a
// leading "./" is dropped, so that the output of `find . -type f` will do. The object `self` (the
// listing itself) is left out. kInvalidArgument names the line.
Result<ObjectListing> ParseListing(std::string_view text, std::string_view self);

}  // namespace optcache::storage
