#pragma once

// Times in HTTP's headers (RFC 9110, section 5.6.7). Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace optcache::sidecar {

// "Sun, 06 Nov 1994 08:49:37 GMT"; of seconds since 1970.
std::string HttpDate(std::int64_t unix_seconds);

// Of that form, or one of the two that older clients send. Nothing: it is none of them.
std::optional<std::int64_t> ParseHttpDate(std::string_view text);

}  // namespace optcache::sidecar
