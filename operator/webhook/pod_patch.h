#pragma once

// Collects the changes of an object as a JSON patch (RFC 6902), and knows what it looks like after
// them.

#include "operator/webhook/json_access.h"

namespace optcache::webhook {

// Not thread-safe: a value with one owner.
class PodPatch {
 public:
  using Path = Json::json_pointer;

  explicit PodPatch(Json object) : object_(std::move(object)) {}

  // As it is after all changes so far.
  const Json& object() const { return object_; }
  const Json& operations() const { return operations_; }

  // Sets a member; the object at `parent` is made if it is missing, its own parent is there.
  void Set(const Path& parent, const std::string& key, Json value);
  // Adds an item to the list `key` of the object at `parent`; the list is made if it is missing.
  void Append(const Path& parent, const std::string& key, Json item);
  void Prepend(const Path& parent, const std::string& key, Json item);

 private:
  void Add(const Path& path, Json value);

  Json object_;
  Json operations_ = Json::array();
};

}  // namespace optcache::webhook
