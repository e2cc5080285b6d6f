// An index of Megatron-LM may be anything: its sequences are no more than its bytes can name, and
// whether one lies within a file can be told.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "dataset/megatron_idx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace dataset = optcache::dataset;
  const std::string_view idx(reinterpret_cast<const char*>(data), size);
  const auto index = dataset::ParseMegatronIdx(idx, "a.bin");
  if (!index) {
    CHECK(index.error().code() == optcache::Code::kInvalidArgument);
    return 0;
  }
  CHECK(index->names.empty() && index->runs.size() <= size / 12);
  CHECK(index->objects.size() == (index->runs.empty() ? 0U : 1U));
  for (const dataset::RangeRun& run : index->runs) {
    CHECK(run.object == 0 && run.count == 1 && run.offset <= dataset::kRangedObjectBytesMax);
    CHECK(dataset::CheckRun(*index, run, 1000).ok() == (run.offset + run.length <= 1000));
  }
  return 0;
}
