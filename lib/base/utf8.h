#pragma once

// Text from outside: is it UTF-8, and where may it be cut?

#include <cstddef>
#include <string>
#include <string_view>

namespace optcache {

// The bytes of the UTF-8 character at the front of `text`, or 0 if there is none: no overlong
// forms, no surrogates, nothing above U+10FFFF (RFC 3629).
std::size_t Utf8Length(std::string_view text);

bool IsUtf8(std::string_view text);

// At most `limit` bytes, never cut in the middle of a UTF-8 character: readers would refuse that.
std::string CutText(std::string text, std::size_t limit);

}  // namespace optcache
