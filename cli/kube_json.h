#pragma once

// Reads objects of the Kubernetes API as they come, for people: what is missing or of another type
// is empty.

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/result.h"

namespace optcache::cli {

// A List. Empty text is an empty one; kInvalidArgument: neither. `what` is for the message.
Result<nlohmann::json> ParseList(const std::string& text, std::string_view what);

// null where there is none. The reference lives as long as `object`.
const nlohmann::json& Member(const nlohmann::json& object, const char* key);
// An empty array where there is none.
const nlohmann::json& Items(const nlohmann::json& object, const char* key);
// Numbers as text, too.
std::string TextIn(const nlohmann::json& object, const char* key);
std::uint64_t NumberIn(const nlohmann::json& object, const char* key);

// "namespace/name".
std::string QualifiedName(const nlohmann::json& object);

struct Condition {
  std::string status = "Unknown";
  std::string reason;
  std::string message;
};
Condition ConditionOf(const nlohmann::json& object, std::string_view type);

}  // namespace optcache::cli
