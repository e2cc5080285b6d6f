#pragma once

// Tar archives for tests, block by block, so that they can be wrong in one place.

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace optcache::dataset {

struct TarHeader {
  std::string name;
  char type = '0';
  std::string size_field;  // empty: `size` in octal
  size_t size = 0;
  std::string prefix;
  std::string magic = std::string(
      "ustar\0"
      "00",
      8);
};

// One block of 512 bytes with its checksum.
inline std::string TarBlock(const TarHeader& header) {
  std::string block(512, '\0');
  const auto put = [&](size_t at, std::string_view text) { block.replace(at, text.size(), text); };
  put(0, header.name);
  put(100, "0000644");
  put(124, header.size_field.empty() ? fmt::format("{:011o}", header.size) : header.size_field);
  put(136, "00000000000");
  put(148, "        ");
  block[156] = header.type;
  put(257, header.magic);
  put(345, header.prefix);
  unsigned sum = 0;
  for (const char c : block)
    sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum));
  block[154] = '\0';
  return block;
}

inline std::string TarPadded(std::string_view data) {
  std::string padded(data);
  padded.resize((data.size() + 511) / 512 * 512, '\0');
  return padded;
}

// A file, or whatever `type` says, with its data.
inline std::string TarEntry(std::string name, std::string_view data, char type = '0') {
  return TarBlock({.name = std::move(name),
                   .type = type,
                   .size_field = {},
                   .size = data.size(),
                   .prefix = {}}) +
         TarPadded(data);
}

inline std::string TarPaxRecord(std::string_view key, std::string_view value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t length = rest + 1;
  while (fmt::formatted_size("{}", length) + rest != length)
    ++length;
  return fmt::format("{} {}={}\n", length, key, value);
}

inline std::string TarEnd() {
  return std::string(1024, '\0');
}

}  // namespace optcache::dataset
