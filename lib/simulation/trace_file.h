#pragma once

// Reads that were recorded elsewhere, from two kinds of file.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"

namespace optcache::simulation {

// The longest file that is read: kMaxReads records of oracleGeneral.
inline constexpr ByteCount kMaxTraceBytes = 2'400'000'000;

// Samples are numbered by when they were first read.
struct Trace {
  std::vector<SampleId> reads;
  std::uint32_t samples = 0;
  std::vector<std::uint32_t> sizes;  // by sample, as it was first read; empty: not known
};

// Text: an id a line, any unsigned number of 64 bits. Empty lines and what follows a # don't count.
// kInvalidArgument names the line.
Result<Trace> ParseIdTrace(std::string_view text);

// libCacheSim's oracleGeneral, not compressed: records of 24 bytes, little-endian: time (4), id
// (8), size (4), next read (8). Time and next read are not needed. kInvalidArgument names the
// record.
Result<Trace> ParseOracleGeneral(ByteSpan bytes);

}  // namespace optcache::simulation
