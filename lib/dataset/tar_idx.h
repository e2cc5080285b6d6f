#pragma once

// What is in a tar archive, as the index file beside it says: `a.idx` beside `a.tar`, which NVIDIA
// DALI's `wds2idx` makes (version v1.2, the one with names). Text: a line "v1.2 SAMPLES", then a
// line a sample with "ENDING OFFSET SIZE NAME" for each of its members, all with one blank between.
// OFFSET is that of the member's data. Source: https://docs.nvidia.com/deeplearning/dali,
// "wds2idx", and its script.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "dataset/tar_reader.h"

namespace optcache::dataset {

// Some 250,000 members; several are read at a time, within the memory of an index Job.
inline constexpr ByteCount kTarIdxBytesMax = 16_MiB;

// "p/a.idx" for "p/a.tar"; empty if the name ends otherwise.
std::string TarIdxPath(std::string_view archive);

// The members in the archive's order. kInvalidArgument names the line: it is no such index, or it
// does not fit an archive of this many bytes, or it does not name all that is in the archive, one
// member right behind the other with one block of header: `wds2idx` leaves folders and hidden files
// out, and reckons wrongly where names are long. Then the archive's own headers have to be read.
Result<std::vector<TarFile>> ParseTarIdx(std::string_view text, ByteCount archive_bytes);

}  // namespace optcache::dataset
