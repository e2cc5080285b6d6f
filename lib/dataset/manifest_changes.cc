#include "dataset/manifest_changes.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

namespace optcache::dataset {
namespace {

// Manifests number objects in several orders. By the hashes of their paths all are sorted alike.
struct HashedObject {
  std::uint64_t hash = 0;
  std::uint32_t index = 0;

  friend auto operator<=>(const HashedObject&, const HashedObject&) = default;
};

std::vector<HashedObject> ByHash(const Manifest& manifest) {
  std::vector<HashedObject> objects;
  objects.reserve(manifest.objects());
  for (std::uint32_t i = 0; i < manifest.objects(); ++i)
    objects.push_back({std::hash<std::string>()(manifest.ObjectAt(i).path), i});
  std::ranges::sort(objects);
  return objects;
}

class ObjectCount {
 public:
  explicit ObjectCount(const Manifest& manifest) : manifest_(manifest) {}

  void Add(const HashedObject& object) {
    first_ = count_ == 0 ? object.index : std::min(first_, object.index);
    ++count_;
  }
  ChangedObjects Done() const {
    if (count_ == 0) return {};
    return {.count = count_, .first = manifest_.ObjectAt(first_).path};
  }

 private:
  const Manifest& manifest_;
  std::uint64_t count_ = 0;
  std::uint32_t first_ = 0;
};

}  // namespace

ManifestChanges CompareManifests(const Manifest& before, const Manifest& after) {
  const std::vector<HashedObject> old_objects = ByHash(before);
  const std::vector<HashedObject> new_objects = ByHash(after);
  ObjectCount added(after);
  ObjectCount changed(after);
  ObjectCount removed(before);
  auto old_one = old_objects.begin();
  auto new_one = new_objects.begin();
  while (old_one != old_objects.end() && new_one != new_objects.end()) {
    if (old_one->hash < new_one->hash) {
      removed.Add(*old_one++);
    } else if (new_one->hash < old_one->hash) {
      added.Add(*new_one++);
    } else {
      const Object was = before.ObjectAt(old_one->index);
      const Object is = after.ObjectAt(new_one->index);
      if (was.path != is.path) {  // of one hash all the same
        removed.Add(*old_one);
        added.Add(*new_one);
      } else if (was.size != is.size || was.validator != is.validator) {
        changed.Add(*new_one);
      }
      ++old_one;
      ++new_one;
    }
  }
  std::for_each(old_one, old_objects.end(), [&](const auto& object) { removed.Add(object); });
  std::for_each(new_one, new_objects.end(), [&](const auto& object) { added.Add(object); });
  return {.added = added.Done(), .changed = changed.Done(), .removed = removed.Done()};
}

}  // namespace optcache::dataset
