#pragma once

// Base64 (RFC 4648, section 4) of binary fields in JSON.

#include <string>
#include <string_view>

#include "base/result.h"

namespace optcache {

std::string EncodeBase64(std::string_view bytes);
// kInvalidArgument for other characters, wrong padding, or bits that are not zero at the end.
Result<std::string> DecodeBase64(std::string_view text);

}  // namespace optcache
