#include "cli/order/npy.h"

#include <bit>
#include <string_view>

#include "base/bytes.h"
#include "base/files.h"

namespace optcache::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "NpyBytes copies ids as they lie");

constexpr std::string_view kMagicAndVersion("\x93NUMPY\x01\x00", 8);
constexpr std::size_t kAlignment = 64;  // of the data, so that it can be mapped

// Magic, version, the header's length in two bytes, and the header: a Python literal padded with
// blanks up to a line end so that the data begins aligned.
std::string NpyHeader(std::size_t count) {
  std::string header =
      "{'descr': '<u4', 'fortran_order': False, 'shape': (" + std::to_string(count) + ",), }";
  const std::size_t before = kMagicAndVersion.size() + 2;
  const std::size_t used = before + header.size() + 1;
  header.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string bytes(kMagicAndVersion);
  bytes += static_cast<char>(header.size() & 0xffU);
  bytes += static_cast<char>(header.size() >> 8U);
  return bytes + header;
}

}  // namespace

std::string NpyBytes(std::span<const SampleId> ids) {
  std::string bytes = NpyHeader(ids.size());
  bytes += AsText(std::as_bytes(ids));
  return bytes;
}

Status WriteNpy(const std::string& path, std::span<const SampleId> ids) {
  return WriteFileAtomically(path, NpyBytes(ids));
}

}  // namespace optcache::cli
