// Looks into JSON of the API by pointers, and gives empty answers where something is missing.
//
// The idea: objects come from many programs and versions, so code that reads them must not fail on
// one odd field. Find walks a pointer step by step and ends in `kNothing`, a null that lives
// forever, so it can return a reference. All other accessors stand on it, and give the empty value
// of their type for what is missing or of another type. nlohmann's own pointers throw instead.

#include "kube/object.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/whole_number.h"

namespace optcache::kube {
namespace {

const Json kNothing;

std::string Unescape(std::string_view step) {
  std::string key;
  key.reserve(step.size());
  for (std::size_t i = 0; i < step.size(); ++i) {
    const bool escaped = step[i] == '~' && i + 1 < step.size();
    key += escaped ? (step[++i] == '1' ? '/' : '~') : step[i];
  }
  return key;
}

const Json& Step(const Json& parent, std::string_view step) {
  if (parent.is_object()) {
    const auto found = parent.find(Unescape(step));
    return found == parent.end() ? kNothing : *found;
  }
  if (!parent.is_array()) return kNothing;
  const auto index = ParseWholeNumber<std::size_t>(step);
  return index && *index < parent.size() ? parent[*index] : kNothing;
}

std::optional<std::string> TextOf(const Json& parent, std::string_view key) {
  if (!parent.is_object()) return std::nullopt;
  const auto found = parent.find(key);
  if (found == parent.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

}  // namespace

std::string ObjectKey::ToString() const {
  return ns.empty() ? name : ns + "/" + name;
}

const Json& Find(const Json& object, std::string_view pointer) {
  const Json* at = &object;
  while (!pointer.empty()) {
    if (pointer.front() != '/') return kNothing;
    pointer.remove_prefix(1);
    const std::string_view step = pointer.substr(0, pointer.find('/'));
    at = &Step(*at, step);
    pointer.remove_prefix(step.size());
  }
  return *at;
}

std::string ToText(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

const Json& Items(const Json& object, std::string_view pointer) {
  static const Json none = Json::array();
  const Json& items = Find(object, pointer);
  return items.is_array() ? items : none;
}

std::string TextAt(const Json& object, std::string_view pointer) {
  const Json& value = Find(object, pointer);
  if (value.is_string()) return value.get<std::string>();
  return value.is_number() || value.is_boolean() ? value.dump() : "";
}

std::optional<std::int64_t> NumberAt(const Json& object, std::string_view pointer) {
  const Json& value = Find(object, pointer);
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return std::nullopt;
    }
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return std::nullopt;
}

std::uint64_t CountAt(const Json& object, std::string_view pointer) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(NumberAt(object, pointer).value_or(0), 0));
}

bool BoolAt(const Json& object, std::string_view pointer) {
  const Json& value = Find(object, pointer);
  return value.is_boolean() && value.get<bool>();
}

std::string PointerStep(std::string_view key) {
  std::string step;
  step.reserve(key.size());
  for (const char c : key) {
    if (c == '~') {
      step += "~0";
    } else if (c == '/') {
      step += "~1";
    } else {
      step += c;
    }
  }
  return step;
}

ObjectKey KeyOf(const Json& object) {
  return {.ns = TextAt(object, "/metadata/namespace"), .name = TextAt(object, "/metadata/name")};
}

std::string UidOf(const Json& object) {
  return TextAt(object, "/metadata/uid");
}

std::string ResourceVersionOf(const Json& object) {
  return TextAt(object, "/metadata/resourceVersion");
}

std::int64_t GenerationOf(const Json& object) {
  return NumberAt(object, "/metadata/generation").value_or(0);
}

bool IsBeingDeleted(const Json& object) {
  return !TextAt(object, "/metadata/deletionTimestamp").empty();
}

std::optional<std::string> LabelOf(const Json& object, std::string_view label) {
  return TextOf(Find(object, "/metadata/labels"), label);
}

std::optional<std::string> AnnotationOf(const Json& object, std::string_view annotation) {
  return TextOf(Find(object, "/metadata/annotations"), annotation);
}

Json MakeObject(const Resource& resource, const ObjectKey& key) {
  Json metadata = {{"name", key.name}};
  if (resource.namespaced && !key.ns.empty()) metadata["namespace"] = key.ns;
  return {{"apiVersion", resource.ApiVersion()},
          {"kind", resource.kind},
          {"metadata", std::move(metadata)}};
}

Json OwnerReference(const Resource& resource, const Json& owner) {
  return {{"apiVersion", resource.ApiVersion()},
          {"kind", resource.kind},
          {"name", KeyOf(owner).name},
          {"uid", UidOf(owner)},
          {"controller", true},
          {"blockOwnerDeletion", true}};
}

std::optional<Owner> ControllerOf(const Json& object) {
  for (const Json& owner : Items(object, "/metadata/ownerReferences")) {
    if (!BoolAt(owner, "/controller")) continue;
    return Owner{.api_version = TextAt(owner, "/apiVersion"),
                 .kind = TextAt(owner, "/kind"),
                 .name = TextAt(owner, "/name"),
                 .uid = TextAt(owner, "/uid")};
  }
  return std::nullopt;
}

Result<Json> ParseList(std::string_view text, std::string_view what) {
  if (text.empty()) return Json{{"items", Json::array()}};
  Json list = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!Find(list, "/items").is_array()) {
    return Error(Code::kInvalidArgument, fmt::format("{} is not a list of objects", what));
  }
  return list;
}

}  // namespace optcache::kube
