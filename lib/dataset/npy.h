#pragma once

// A numpy array in a file (.npy), whose rows, along the first axis, are samples: where they lie, by
// the header alone. Versions 1 to 3 of numpy's format, which `numpy.lib.format` describes. Pure.

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "dataset/ranges.h"

namespace optcache::dataset {

inline constexpr ByteCount kNpyFrontBytes = 12;  // they tell how long the header is
inline constexpr ByteCount kNpyHeaderBytesMax = 1_MiB;

// How many bytes of the file its header is, `front` included: its first kNpyFrontBytes.
// kInvalidArgument: this is no .npy file, of another version, or its header has more bytes than
// kNpyHeaderBytesMax.
Result<ByteCount> NpyHeaderBytes(std::string_view front);

// The rows of the array in `path`, a file of this many bytes that begins with `header`: one run, or
// neither run nor object for an array without rows. kInvalidArgument says what is wrong with the
// header, or why rows do not lie in one piece each: Fortran order, Python objects, a single value,
// rows without bytes, or a file that has fewer or more bytes than its array.
Result<RangeIndex> ParseNpy(std::string_view path, std::string_view header, ByteCount file_bytes);

}  // namespace optcache::dataset
