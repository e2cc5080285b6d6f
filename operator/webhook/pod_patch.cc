#include "operator/webhook/pod_patch.h"

#include <utility>

namespace optcache::webhook {

void PodPatch::Add(const Path& path, Json value) {
  operations_.push_back({{"op", "add"}, {"path", path.to_string()}, {"value", std::move(value)}});
}

void PodPatch::Set(const Path& parent, const std::string& key, Json value) {
  Json& object = object_[parent];
  if (!object.is_object()) {
    object = {{key, std::move(value)}};
    Add(parent, object);
    return;
  }
  Add(parent / key, value);
  object[key] = std::move(value);
}

void PodPatch::Append(const Path& parent, const std::string& key, Json item) {
  const Json& list = Member(object_[parent], key.c_str());
  if (!list.is_array() || list.empty()) {
    Set(parent, key, Json::array({std::move(item)}));
    return;
  }
  Add(parent / key / "-", item);
  object_[parent][key].push_back(std::move(item));
}

void PodPatch::Prepend(const Path& parent, const std::string& key, Json item) {
  const Json& list = Member(object_[parent], key.c_str());
  if (!list.is_array() || list.empty()) {
    Set(parent, key, Json::array({std::move(item)}));
    return;
  }
  Add(parent / key / std::size_t{0}, item);
  Json& items = object_[parent][key];
  items.insert(items.begin(), std::move(item));
}

}  // namespace optcache::webhook
