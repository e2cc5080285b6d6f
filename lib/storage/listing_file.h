#pragma once

// The text file by which a plain web server lists a dataset.

#include <functional>
#include <optional>
#include <string_view>

#include "storage/object_store.h"

namespace optcache::storage {

struct ListingLine {
  std::string_view name;           // not empty
  std::optional<ObjectInfo> info;  // unset: the line has the name alone
};

// Hands each line that is not empty to `take`: a name, then, if known, its size in bytes and its
// ETag as the server sends it, in quotes, separated by tabs. kInvalidArgument names the first line
// that is none, or for which `take` is not ok. A byte-order mark in front is no part of the first.
Status ReadListing(std::string_view text, const std::function<Status(ListingLine line)>& take);

// The names are paths as they are (not percent-encoded). A leading "./" is dropped, so that the
// output of `find . -type f` will do. The object `self` (the listing itself) is left out.
// kInvalidArgument names the line.
Result<ObjectListing> ParseListing(std::string_view text, std::string_view self);

}  // namespace optcache::storage
