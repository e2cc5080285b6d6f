#include "cli/kube_json.h"

#include <fmt/format.h>

namespace optcache::cli {

using Json = nlohmann::json;

Result<Json> ParseList(const std::string& text, std::string_view what) {
  if (text.empty()) return Json::object();
  Json list = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!list.is_object() || !Member(list, "items").is_array()) {
    return Error(Code::kInvalidArgument,
                 fmt::format("what kubectl printed for {} is not a list of objects", what));
  }
  return list;
}

const Json& Member(const Json& object, const char* key) {
  static const Json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

const Json& Items(const Json& object, const char* key) {
  static const Json nothing = Json::array();
  const Json& items = Member(object, key);
  return items.is_array() ? items : nothing;
}

std::string TextIn(const Json& object, const char* key) {
  const Json& value = Member(object, key);
  if (value.is_string()) return value.get<std::string>();
  return value.is_number() || value.is_boolean() ? value.dump() : "";
}

std::uint64_t NumberIn(const Json& object, const char* key) {
  const Json& value = Member(object, key);
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

std::string QualifiedName(const Json& object) {
  const Json& metadata = Member(object, "metadata");
  return TextIn(metadata, "namespace") + "/" + TextIn(metadata, "name");
}

Condition ConditionOf(const Json& object, std::string_view type) {
  for (const Json& condition : Items(Member(object, "status"), "conditions")) {
    if (TextIn(condition, "type") != type) continue;
    return {.status = TextIn(condition, "status"),
            .reason = TextIn(condition, "reason"),
            .message = TextIn(condition, "message")};
  }
  return {};
}

}  // namespace optcache::cli
