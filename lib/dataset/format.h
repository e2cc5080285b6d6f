#pragma once

// What the objects of a source are, and the names of that.

#include <array>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace optcache::dataset {

enum class Format : std::uint8_t {
  kFiles,     // samples
  kTar,       // tar archives in which members of one key make a sample, as for `webdataset`
  kTarFiles,  // tar archives in which each member is a sample
  kRanges,    // anything, and lists of which ranges of it are samples (ranges_csv.h)
  kNpy,       // arrays of numpy, whose rows are samples (npy.h)
  kMegatron,  // tokens of Megatron-LM, whose sequences are samples (megatron_idx.h)
};

struct FormatNames {
  Format format;
  std::string_view name;          // on command lines
  std::string_view in_resources;  // in a Dataset
};

inline constexpr std::array<FormatNames, 6> kFormats = {
    FormatNames{.format = Format::kFiles, .name = "files", .in_resources = "Files"},
    FormatNames{.format = Format::kTar, .name = "tar", .in_resources = "Tar"},
    FormatNames{.format = Format::kTarFiles, .name = "tar-files", .in_resources = "TarFiles"},
    FormatNames{.format = Format::kRanges, .name = "ranges", .in_resources = "Ranges"},
    FormatNames{.format = Format::kNpy, .name = "npy", .in_resources = "Npy"},
    FormatNames{.format = Format::kMegatron, .name = "megatron", .in_resources = "Megatron"}};

// By either name. kInvalidArgument lists those of command lines.
Result<Format> ParseFormat(std::string_view name);

}  // namespace optcache::dataset
