#include "dataset/validator.h"

#include <algorithm>

#include <fmt/format.h>

namespace optcache::dataset {

bool IsETag(std::string_view text) {
  if (text.starts_with("W/")) text.remove_prefix(2);
  if (text.size() < 2 || !text.starts_with('"') || !text.ends_with('"')) return false;
  return std::ranges::all_of(text.substr(1, text.size() - 2),
                             [](unsigned char c) { return c > ' ' && c != '"' && c != 0x7f; });
}

Status CheckETag(std::string_view etag) {
  if (etag.size() > kETagBytesMax) {
    return {Code::kInvalidArgument,
            fmt::format("its ETag has {} bytes; the limit is {}", etag.size(), kETagBytesMax)};
  }
  if (etag.empty() || IsETag(etag)) return OkStatus();
  return {Code::kInvalidArgument,
          "its ETag is none: it must be \"...\" or W/\"...\" without blanks, control characters "
          "and other quotes"};
}

}  // namespace optcache::dataset
