// An archive may be anything: what the reader asks for lies within it, it comes to an end, and the
// groups hold what it found.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/check.h"
#include "dataset/tar_groups.h"
#include "dataset/tar_reader.h"

namespace optcache::dataset {
namespace {

// Makes the checksums of all blocks right, so that the fuzzer gets behind them.
void Seal(std::string& bytes) {
  for (size_t block = 0; block + kTarBlockBytes <= bytes.size(); block += kTarBlockBytes) {
    if (bytes[block] == '\0') continue;
    bytes.replace(block + 148, 8, "        ");
    unsigned sum = 0;
    for (size_t i = 0; i < kTarBlockBytes; ++i)
      sum += static_cast<unsigned char>(bytes[block + i]);
    for (size_t digit = 0; digit < 6; ++digit) {
      bytes[block + 153 - digit] = static_cast<char>('0' + sum % 8);
      sum /= 8;
    }
    bytes[block + 154] = '\0';
  }
}

void Read(const std::string& bytes) {
  Result<TarReader> reader = TarReader::Open(bytes.size());
  if (!reader) return;
  TarGrouper grouper;
  ByteCount last = 0;
  while (!reader->done()) {
    CHECK(reader->position() >= last && reader->wanted() > 0);
    CHECK(reader->wanted() <= bytes.size() - reader->position());
    last = reader->position() + reader->wanted();
    const auto file = reader->Take(AsBytes(bytes).subspan(reader->position(), reader->wanted()));
    if (!file) return;
    if (!*file) continue;
    const TarFile& found = **file;
    CHECK(found.offset >= last && found.size <= bytes.size() - found.offset);
    CHECK(!found.name.empty() && found.name.size() <= kTarNameBytesMax);
    if (!grouper.Add(found).ok()) return;
  }
  for (const TarGroup& group : std::move(grouper).Finish())
    CHECK(!group.members.empty() && !group.key.empty());
}

}  // namespace
}  // namespace optcache::dataset

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  optcache::dataset::Read(bytes);
  optcache::dataset::Seal(bytes);
  optcache::dataset::Read(bytes);
  return 0;
}
