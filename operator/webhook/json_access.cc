#include "operator/webhook/json_access.h"

#include <fmt/format.h>

namespace optcache::webhook {
namespace {

constexpr std::size_t kMaxQuoted = 64;

// The parser copes with any depth, what walks its result does not.
std::size_t DepthOf(std::string_view text) {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

Result<Json> ParseJson(std::string_view text) {
  if (text.size() > kMaxReviewBytes) {
    return Error(Code::kInvalidArgument,
                 fmt::format("JSON of {} bytes, allowed: {}", text.size(), kMaxReviewBytes));
  }
  if (const std::size_t depth = DepthOf(text); depth > kMaxDepth) {
    return Error(Code::kInvalidArgument,
                 fmt::format("JSON of depth {}, allowed: {}", depth, kMaxDepth));
  }
  try {
    return Json::parse(text);
  } catch (const Json::exception& exception) {
    return Error(Code::kInvalidArgument, std::string("not JSON: ") + exception.what());
  }
}

const Json& Member(const Json& object, const char* key) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

const Json& Items(const Json& object, const char* key) {
  static const Json none = Json::array();
  const Json& items = Member(object, key);
  return items.is_array() ? items : none;
}

std::string TextIn(const Json& object, const char* key) {
  const Json& value = Member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

const Json* FindNamed(const Json& items, std::string_view name) {
  for (const Json& item : items) {
    const Json& found = Member(item, "name");
    if (found.is_string() && found.get_ref<const std::string&>() == name) return &item;
  }
  return nullptr;
}

std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text.substr(0, kMaxQuoted))
    quoted += c >= ' ' && c <= '~' ? c : '?';
  return quoted + (text.size() > kMaxQuoted ? "…\"" : "\"");
}

}  // namespace optcache::webhook
