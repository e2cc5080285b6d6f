#pragma once

// Little-endian integers in byte strings. Callers check the bounds.

#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

namespace optcache::dataset::internal {

static_assert(std::endian::native == std::endian::little, "the manifest is read in place");

template <typename Integer>
  requires std::is_integral_v<Integer>
Integer Load(const char* at) {
  Integer value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

template <typename Integer>
  requires std::is_integral_v<Integer>
void Append(std::string& out, std::type_identity_t<Integer> value) {
  char bytes[sizeof(Integer)];
  std::memcpy(bytes, &value, sizeof(value));
  out.append(bytes, sizeof(bytes));
}

}  // namespace optcache::dataset::internal
