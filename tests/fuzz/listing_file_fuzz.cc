// A web server's listing, or a bucket's list of keys, may be anything: what is taken from it are
// paths that a manifest can hold, with ETags that are some, and without the listing itself.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "dataset/manifest.h"
#include "dataset/validator.h"
#include "storage/key_list.h"
#include "storage/listing_file.h"

namespace {

constexpr std::string_view kSelf = "index.txt";

void CheckListing(std::string_view text,
                  const optcache::Result<optcache::storage::ObjectListing>& listing) {
  if (!listing) {
    CHECK(listing.error().code() == optcache::Code::kInvalidArgument);
    return;
  }
  CHECK(listing->objects.size() <= static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1);
  for (const auto& object : listing->objects) {
    CHECK(optcache::dataset::CheckObjectPath(object.path).ok() && object.path != kSelf);
    CHECK(object.path.find('\n') == std::string_view::npos);
    if (object.info) CHECK(optcache::dataset::CheckETag(object.info->validator.etag).ok());
    const std::size_t slash = object.path.find('/');
    if (slash == std::string_view::npos) continue;
    CHECK(std::ranges::binary_search(listing->top_folders, object.path.substr(0, slash)));
  }
}

optcache::Result<optcache::storage::ObjectListing> ListKeys(std::string_view text,
                                                            std::string prefix) {
  optcache::storage::KeyList keys(std::move(prefix), std::string(kSelf));
  RETURN_IF_ERROR(optcache::storage::AddKeysOfText(text, keys));
  return std::move(keys).Take();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckListing(text, optcache::storage::ParseListing(text, kSelf));
  CheckListing(text, ListKeys(text, ""));
  CheckListing(text, ListKeys(text, "a/"));
  return 0;
}
