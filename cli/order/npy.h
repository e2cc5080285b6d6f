#pragma once

// NumPy's file format (NEP 1, version 1.0), as far as a list of ids needs it.

#include <span>
#include <string>

#include "base/ids.h"
#include "base/status.h"

namespace optcache::cli {

// Replaces `path` by a one-dimensional array of little-endian uint32, readable by numpy.load.
Status WriteNpy(const std::string& path, std::span<const SampleId> ids);

// The file's content.
std::string NpyBytes(std::span<const SampleId> ids);

}  // namespace optcache::cli
