// An index file may be anything: what it names lies within the archive, in order and apart.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "dataset/tar_idx.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr optcache::ByteCount kArchiveBytes = 1 << 20;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto files = optcache::dataset::ParseTarIdx(text, kArchiveBytes);
  if (!files) return 0;
  optcache::ByteCount last = 0;
  for (const optcache::dataset::TarFile& file : *files) {
    CHECK(file.offset >= last + optcache::dataset::kTarBlockBytes);
    CHECK(!file.name.empty() && file.size <= kArchiveBytes - file.offset);
    last = file.offset + file.size;
  }
  return 0;
}
