#include "storage/object_store.h"

#include <algorithm>

#include <fmt/format.h>

#include "dataset/manifest.h"

namespace optcache::storage {
namespace {

std::string_view WithoutWeakMark(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  return etag;
}

}  // namespace

bool MayGetBetter(Code code) {
  return code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kDataLoss ||
         code == Code::kResourceExhausted;
}

Status CheckReadRequest(const ReadRequest& request) {
  RETURN_IF_ERROR(dataset::CheckObjectPath(request.object));
  const ByteCount length = request.destination.size();
  if (request.offset > request.object_size || length > request.object_size - request.offset) {
    return {Code::kInvalidArgument, fmt::format("{}: beyond the object's end at {}",
                                                Describe(request), request.object_size)};
  }
  if (length == 0 && request.object_size > 0) {
    return {Code::kInvalidArgument, fmt::format("{}: nothing to read", request.object)};
  }
  return OkStatus();
}

Status CheckUnfitKeys(const ObjectListing& listing,
                      const std::function<bool(std::string_view key)>& is_sample) {
  const auto unfit = std::ranges::find_if(listing.unfit_keys, is_sample);
  if (unfit == listing.unfit_keys.end()) return OkStatus();
  return {
      Code::kInvalidArgument,
      fmt::format("no manifest can hold the key \"{}\": {}. Rename it, or choose the samples by "
                  "include patterns that leave it out",
                  *unfit, dataset::CheckObjectPath(*unfit).message())};
}

std::string Describe(const ReadRequest& request) {
  const ByteCount length = request.destination.size();
  if (length == 0) return fmt::format("{} (empty)", request.object);
  return fmt::format("{} bytes {}-{}", request.object, request.offset, request.offset + length - 1);
}

Status CheckUnchanged(std::string_view what, const ObjectInfo& listed, const ObjectInfo& found) {
  const auto changed = [&](std::string_view part, const auto& was, const auto& is) {
    return Status(Code::kConflict,
                  fmt::format("{} changed since the manifest was made: {} was {}, is {}. {}", what,
                              part, was, is, kIndexAgain));
  };
  if (found.size != listed.size) return changed("size", listed.size, found.size);
  if (ETagsDiffer(listed.validator.etag, found.validator.etag)) {
    return changed("ETag", listed.validator.etag, found.validator.etag);
  }
  const std::int64_t listed_ns = listed.validator.modified_ns;
  const std::int64_t found_ns = found.validator.modified_ns;
  if (listed_ns != 0 && found_ns != 0 && listed_ns != found_ns) {
    return changed("modification time in ns", listed_ns, found_ns);
  }
  return OkStatus();
}

bool ETagsDiffer(std::string_view a, std::string_view b) {
  return !a.empty() && !b.empty() && WithoutWeakMark(a) != WithoutWeakMark(b);
}

}  // namespace optcache::storage
