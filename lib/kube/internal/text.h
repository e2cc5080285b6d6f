#pragma once

#include <cstddef>
#include <string>

namespace optcache::kube {

// At most `limit` bytes, never cut in the middle of a UTF-8 character: the API server would refuse
// that.
inline std::string CutText(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xc0U) == 0x80U)
    --limit;
  text.resize(limit);
  return text;
}

}  // namespace optcache::kube
