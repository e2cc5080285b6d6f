#include "kube/object_cache.h"

#include "base/check.h"

namespace optcache::kube {

IndexFunction ByNamespace() {
  return [](const Json& object) { return std::vector{KeyOf(object).ns}; };
}

IndexFunction ByController() {
  return [](const Json& object) -> std::vector<std::string> {
    const auto owner = ControllerOf(object);
    if (!owner) return {};
    return {owner->uid};
  };
}

IndexFunction ByLabel(std::string label) {
  return [label = std::move(label)](const Json& object) -> std::vector<std::string> {
    auto value = LabelOf(object, label);
    if (!value) return {};
    return {*std::move(value)};
  };
}

ObjectCache::ObjectCache(std::map<std::string, IndexFunction> indexes) {
  for (auto& [name, function] : indexes)
    indexes_.emplace(name, Index{.function = std::move(function), .entries = {}});
}

ObjectCache::Entry ObjectCache::Put(const ObjectKey& key, Json object) {
  Entry before = Remove(key);
  auto entry = std::make_shared<const Json>(std::move(object));
  for (auto& [name, index] : indexes_) {
    for (const std::string& value : index.function(*entry))
      index.entries[value][key] = entry;
  }
  objects_[key] = std::move(entry);
  return before;
}

ObjectCache::Entry ObjectCache::Remove(const ObjectKey& key) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return nullptr;
  Entry before = std::move(found->second);
  objects_.erase(found);
  Unindex(key, *before);
  return before;
}

void ObjectCache::Unindex(const ObjectKey& key, const Json& object) {
  for (auto& [name, index] : indexes_) {
    for (const std::string& value : index.function(object)) {
      const auto found = index.entries.find(value);
      if (found == index.entries.end()) continue;
      found->second.erase(key);
      if (found->second.empty()) index.entries.erase(found);
    }
  }
}

ObjectCache::Entry ObjectCache::Find(const ObjectKey& key) const {
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : found->second;
}

std::vector<ObjectCache::Entry> ObjectCache::List() const {
  std::vector<Entry> entries;
  entries.reserve(objects_.size());
  for (const auto& [key, entry] : objects_)
    entries.push_back(entry);
  return entries;
}

std::vector<ObjectKey> ObjectCache::Keys() const {
  std::vector<ObjectKey> keys;
  keys.reserve(objects_.size());
  for (const auto& [key, entry] : objects_)
    keys.push_back(key);
  return keys;
}

std::vector<ObjectCache::Entry> ObjectCache::Lookup(const std::string& index,
                                                    const std::string& value) const {
  const auto found = indexes_.find(index);
  CHECK(found != indexes_.end());
  std::vector<Entry> entries;
  const auto at = found->second.entries.find(value);
  if (at == found->second.entries.end()) return entries;
  for (const auto& [key, entry] : at->second)
    entries.push_back(entry);
  return entries;
}

}  // namespace optcache::kube
