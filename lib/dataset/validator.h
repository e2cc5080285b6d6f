#pragma once

// What a source says about an object's version, by which a change is noticed.

#include <cstdint>
#include <string>

namespace optcache::dataset {

// A file has a modification time, an HTTP object an ETag, a modification time (whole seconds), both
// or neither. A value.
struct Validator {
  std::int64_t modified_ns = 0;  // nanoseconds since 1970; 0: unknown
  std::string etag;              // as sent, quotes included; empty: unknown

  bool known() const { return modified_ns != 0 || !etag.empty(); }
  friend bool operator==(const Validator&, const Validator&) = default;
};

}  // namespace optcache::dataset
