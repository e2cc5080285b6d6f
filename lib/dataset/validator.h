#pragma once

// What a source says about an object's version, by which a change is noticed.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace optcache::dataset {

// A file has a modification time, an HTTP object an ETag, a modification time (whole seconds), both
// or neither. A value.
struct Validator {
  std::int64_t modified_ns = 0;  // nanoseconds since 1970; 0: unknown
  std::string etag;              // as sent, quotes included; empty: unknown

  bool known() const { return modified_ns != 0 || !etag.empty(); }
  friend bool operator==(const Validator&, const Validator&) = default;
};

inline constexpr size_t kETagBytesMax = 256;

// By RFC 9110: "..." or W/"...", without blanks, control characters and other quotes.
bool IsETag(std::string_view text);

// kInvalidArgument says why `etag` may not stand in a manifest: it is not empty and no ETag, or
// longer than kETagBytesMax. It goes into the headers of requests as it is.
Status CheckETag(std::string_view etag);

}  // namespace optcache::dataset
