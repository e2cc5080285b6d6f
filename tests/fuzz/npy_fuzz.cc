// A file may begin with anything: the rows that are taken from it lie within it, behind its header,
// and fill it.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "dataset/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace dataset = optcache::dataset;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const auto header = dataset::NpyHeaderBytes(file);
  if (!header) {
    CHECK(header.error().code() == optcache::Code::kInvalidArgument);
    return 0;
  }
  CHECK(*header <= dataset::kNpyHeaderBytesMax);
  // The file's length is a part of the input: of its last byte, so that headers can fit it.
  const optcache::ByteCount bytes = *header + data[size - 1] % 64U;
  const auto rows = dataset::ParseNpy("a.npy", file.substr(0, *header), bytes);
  if (!rows) {
    CHECK(rows.error().code() == optcache::Code::kInvalidArgument);
    return 0;
  }
  CHECK(rows->objects.size() == rows->runs.size() && rows->runs.size() <= 1 && rows->names.empty());
  if (rows->runs.empty()) return 0;
  const dataset::RangeRun& run = rows->runs.front();
  CHECK(run.object == 0 && run.length > 0 && run.count > 0 && run.offset == *header);
  CHECK(dataset::CheckRun(*rows, run, bytes).ok() && run.count * run.length == bytes - *header);
  return 0;
}
