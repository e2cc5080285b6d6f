#pragma once

// Objects of the Kubernetes API as they come: JSON, read leniently. What is missing or of another
// type is empty, so that one odd object disturbs nobody else.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "kube/resources.h"

namespace optcache::kube {

using Json = nlohmann::json;

// Which object of its kind. `ns` is empty for what belongs to no namespace.
struct ObjectKey {
  std::string ns;
  std::string name;

  // "namespace/name", or "name".
  std::string ToString() const;
  auto operator<=>(const ObjectKey&) const = default;
};

// One line. Text that is no UTF-8 is replaced: some comes from jobs, which may call themselves what
// they like.
std::string ToText(const Json& json);

// What lies at an RFC 6901 pointer, "/spec/containers/0/name"; null where nothing does. The
// reference lives as long as `object`.
const Json& Find(const Json& object, std::string_view pointer);
// The array there; an empty one where there is none.
const Json& Items(const Json& object, std::string_view pointer);
// The text there; numbers and booleans as text, too.
std::string TextAt(const Json& object, std::string_view pointer);
// The integer there; nothing if it is none or does not fit.
std::optional<std::int64_t> NumberAt(const Json& object, std::string_view pointer);
// The count there; 0 if it is none, is below 0 or does not fit.
std::uint64_t CountAt(const Json& object, std::string_view pointer);
bool BoolAt(const Json& object, std::string_view pointer);

// One step of a pointer: '/' and '~' escaped, for keys like "app.kubernetes.io/name".
std::string PointerStep(std::string_view key);

ObjectKey KeyOf(const Json& object);
std::string UidOf(const Json& object);
std::string ResourceVersionOf(const Json& object);
std::int64_t GenerationOf(const Json& object);
bool IsBeingDeleted(const Json& object);
std::optional<std::string> LabelOf(const Json& object, std::string_view label);
std::optional<std::string> AnnotationOf(const Json& object, std::string_view annotation);

// An object with apiVersion, kind and metadata.
Json MakeObject(const Resource& resource, const ObjectKey& key);

// For metadata.ownerReferences of an object in the owner's namespace: the owner is its controller,
// and is gone only after it where somebody asks for that.
Json OwnerReference(const Resource& resource, const Json& owner);

struct Owner {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
};
// The one owner that is the controller.
std::optional<Owner> ControllerOf(const Json& object);

// A List of any kind, as text; no text is an empty one, as kubectl prints for a kind that it does
// not know. kInvalidArgument: it is none. `what` is for the message.
Result<Json> ParseList(std::string_view text, std::string_view what);

}  // namespace optcache::kube
