// Recorded reads, as text and as oracleGeneral: nothing that a file holds may do more than be
// refused, and what is accepted is whole.

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "simulation/trace_file.h"

namespace {

void CheckWhole(const optcache::Result<optcache::simulation::Trace>& trace) {
  if (!trace) return;
  CHECK(!trace->reads.empty());
  CHECK(trace->sizes.empty() || trace->sizes.size() == trace->samples);
  for (const optcache::SampleId sample : trace->reads)
    CHECK(sample < trace->samples);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const optcache::ByteSpan bytes = std::as_bytes(std::span(data, size));
  CheckWhole(optcache::simulation::ParseIdTrace(optcache::AsText(bytes)));
  CheckWhole(optcache::simulation::ParseOracleGeneral(bytes));
  return 0;
}
