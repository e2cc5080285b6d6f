#pragma once

// The header Range of HTTP (RFC 9110, section 14), as S3 reads it: one range of bytes. Pure.

#include <optional>
#include <string_view>

#include "base/bytes.h"

namespace optcache::sidecar {

// A part of an object. A value.
struct ByteRange {
  ByteCount first = 0;
  ByteCount length = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

enum class RangeKind {
  kWhole,  // no range, one that is not understood, or several: all of the object is meant
  kPart,
  kUnsatisfiable,  // it begins at or after the end, or asks for the last 0 bytes
};

struct RequestedRange {
  RangeKind kind = RangeKind::kWhole;
  ByteRange bytes;  // of the object; empty if kUnsatisfiable
};

// Of an object of `size` bytes. `header` is the value of Range; nothing: there is none.
RequestedRange ParseRange(std::optional<std::string_view> header, ByteCount size);

}  // namespace optcache::sidecar
