#pragma once

// The pages by which web servers show a folder: nginx's and Apache's autoindex, Python's
// http.server and the like. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace optcache::storage {

// Stands in place of a listing file's name.
inline constexpr std::string_view kAutoindexListing = "autoindex";
inline constexpr ByteCount kAutoindexPageBytesMax = 256_MiB;  // a million files, with long names

// What lies in one folder, in the page's order and each once; names without slashes, as bytes.
struct AutoindexPage {
  std::vector<std::string> files;
  std::vector<std::string> folders;
};

// Takes the links of a page that lead to what lies right below it: relative ones, and absolute ones
// that begin with `page_path`, the percent-encoded path of the page with a slash at its end. All
// else is left out: links upwards and elsewhere, those by which a page is sorted, and names that no
// object can have. Sizes and times that the page may show are not read, since they are rounded.
// kInvalidArgument: the page has no links at all, so it is none of a folder.
Result<AutoindexPage> ParseAutoindex(std::string_view html, std::string_view page_path);

}  // namespace optcache::storage
