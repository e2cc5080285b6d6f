#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace optcache {

// `text` as a gzip file that packs nothing (RFC 1951, 3.2.4). At most 65,535 bytes.
inline std::string StoredGzip(std::string_view text) {
  std::uint32_t crc = ~0U;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
  }
  std::string file("\x1f\x8b\x08\0\0\0\0\0\0\xff\x01", 11);  // one stored block, the last one
  const auto add = [&](std::uint32_t number, unsigned bytes) {
    for (; bytes > 0; --bytes, number >>= 8U)
      file += static_cast<char>(number & 0xffU);
  };
  const auto length = static_cast<std::uint32_t>(text.size());
  add(length, 2);
  add(~length & 0xffffU, 2);
  file += text;
  add(~crc, 4);
  add(length, 4);
  return file;
}

}  // namespace optcache
