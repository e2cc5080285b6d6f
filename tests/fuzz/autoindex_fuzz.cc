// A page may be anything: what is taken from it are names that may stand in a path.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "dataset/manifest.h"
#include "storage/autoindex.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using optcache::dataset::CheckObjectPath;
  const std::string_view html(reinterpret_cast<const char*>(data), size);
  const auto page = optcache::storage::ParseAutoindex(html, "/data/");
  if (!page) return 0;
  for (const auto& names : {page->files, page->folders}) {
    for (const auto& name : names)
      CHECK(CheckObjectPath(name).ok() && name.find('/') == std::string_view::npos);
  }
  return 0;
}
