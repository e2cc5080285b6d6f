#pragma once

// The objects of one kind as last seen, with indexes.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kube/object.h"

namespace optcache::kube {

// Under which values an object is found in an index; none: not at all.
using IndexFunction = std::function<std::vector<std::string>(const Json&)>;

// Ready-made: metadata.namespace; the uid of the controlling owner; the value of a label.
IndexFunction ByNamespace();
IndexFunction ByController();
IndexFunction ByLabel(std::string label);

// Not thread-safe: a value with one owner. What it hands out is immutable and shared, as a change
// must not pull an object away under its readers.
class ObjectCache {
 public:
  using Entry = std::shared_ptr<const Json>;

  // `indexes` by name, for good.
  explicit ObjectCache(std::map<std::string, IndexFunction> indexes = {});

  // What was there before; null if nothing.
  Entry Put(const ObjectKey& key, Json object);
  Entry Remove(const ObjectKey& key);

  // Null if there is none.
  Entry Find(const ObjectKey& key) const;
  // All, ordered by key.
  std::vector<Entry> List() const;
  std::vector<ObjectKey> Keys() const;
  // Those that index `index` (which there must be) has under `value`, ordered by key.
  std::vector<Entry> Lookup(const std::string& index, const std::string& value) const;
  std::size_t size() const { return objects_.size(); }

 private:
  struct Index {
    IndexFunction function;
    std::map<std::string, std::map<ObjectKey, Entry>> entries;
  };
  void Unindex(const ObjectKey& key, const Json& object);

  std::map<ObjectKey, Entry> objects_;
  std::map<std::string, Index> indexes_;
};

}  // namespace optcache::kube
