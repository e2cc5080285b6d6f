#pragma once

// Where keys that have not been seen may lie, by those that have: numbers (img_0000001.jpg),
// digests, UUIDs, dates. Pure.

#include <string>
#include <string_view>
#include <vector>

namespace optcache::storage::internal {

struct SeenKeys {
  std::vector<std::string_view> keys;  // of one page, ascending
  std::string_view end;                // of the range that the page begins; empty: there is none
};

// At most `cuts_max` strings, ascending, above the last of the keys and below the end, that cut
// what is ahead into pieces of four pages or more as full as this one, if it goes on as the page
// does. Each is UTF-8, and a guess: a piece may well have no keys. None if the keys are of several
// folders.
std::vector<std::string> GuessCuts(const SeenKeys& seen, size_t cuts_max);

}  // namespace optcache::storage::internal
