#pragma once

// Text from outside: is it UTF-8, where may it be cut, and how is it shown?

#include <cstddef>
#include <string>
#include <string_view>

namespace optcache {

// What editors and spreadsheets may write in front of a text, of which it is no part.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// The bytes of the UTF-8 character at the front of `text`, or 0 if there is none: no overlong
// forms, no surrogates, nothing above U+10FFFF (RFC 3629).
std::size_t Utf8Length(std::string_view text);

bool IsUtf8(std::string_view text);

// At most `limit` bytes, never cut in the middle of a UTF-8 character: readers would refuse that.
std::string CutText(std::string text, std::size_t limit);

// What a terminal or a log may show of `text`, in one line and without obeying it: a control
// character (below U+0020, or U+007F to U+009F) as "\u001b", a byte that is no UTF-8 as "\xff".
// Those among `kept`, such as "\n", stay.
std::string Visible(std::string_view text, std::string_view kept = {});

}  // namespace optcache
