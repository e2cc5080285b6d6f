// A list of ranges may be anything: what is taken from it names objects that a manifest can hold,
// each once, and numbers that can be added.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>

#include "base/check.h"
#include "dataset/manifest.h"
#include "dataset/ranges_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using optcache::dataset::CheckObjectPath;
  using optcache::dataset::kRangedObjectBytesMax;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto index = optcache::dataset::ParseRangesCsv(text);
  if (!index) {
    CHECK(index.error().code() == optcache::Code::kInvalidArgument);
    return 0;
  }
  CHECK(index->samples() >= 1 && index->samples() <= size);
  CHECK(std::set(index->objects.begin(), index->objects.end()).size() == index->objects.size());
  for (const auto& object : index->objects)
    CHECK(CheckObjectPath(object).ok());
  CHECK(index->names.empty() || index->names.size() == index->runs.size());
  for (const auto& name : index->names)
    CHECK(CheckObjectPath(name).ok());
  std::uint32_t line = 0;
  for (const auto& run : index->runs) {
    CHECK(run.object < index->objects.size() && run.count == 1 && run.line > line);
    CHECK(run.offset <= kRangedObjectBytesMax && run.length <= kRangedObjectBytesMax);
    line = run.line;
    const bool fits = optcache::dataset::CheckRun(*index, run, 1000).ok();
    CHECK(fits == (run.offset + run.length <= 1000));
  }
  return 0;
}
