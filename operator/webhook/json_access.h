#pragma once

// Reads JSON from outside without surprises: what is missing or of another type is empty, and what
// is too large or too deep is never parsed.

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/result.h"

namespace optcache::webhook {

using Json = nlohmann::json;

inline constexpr ByteCount kMaxReviewBytes = 4_MiB;  // etcd takes 1.5 MiB, API servers send 3
inline constexpr std::size_t kMaxDepth = 128;        // pods have about 15

// kInvalidArgument says what is wrong with it.
Result<Json> ParseJson(std::string_view text);

// null where there is none. The reference lives as long as `object`.
const Json& Member(const Json& object, const char* key);
// An empty array where there is none.
const Json& Items(const Json& object, const char* key);
// Empty where there is none.
std::string TextIn(const Json& object, const char* key);
// The first item whose `name` is that; null if there is none.
const Json* FindNamed(const Json& items, std::string_view name);

// For messages: in quotes, at most 64 characters, all of them printable.
std::string Quote(std::string_view text);

}  // namespace optcache::webhook
