#include "sidecar/s3/key_space.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "dataset/digest.h"

namespace optcache::sidecar {
namespace {

constexpr std::int64_t kNanosecondsInSecond = 1'000'000'000;
constexpr std::size_t kEtagDigits = 40;  // not 32: those would be taken for an MD5

std::string Quoted(const dataset::Digest& digest) {
  return '"' + dataset::ToHex(digest).substr(0, kEtagDigits) + '"';
}

}  // namespace

std::string ETagOf(const dataset::Manifest& manifest, SampleId id) {
  const dataset::Validator validator = manifest.ValidatorOf(id);
  const bool whole_object = manifest.layout() == dataset::Layout::kObjects;
  if (whole_object && validator.etag.starts_with('"')) return validator.etag;
  if (const auto digest = manifest.SampleDigest(id)) return Quoted(*digest);
  const std::string version =
      fmt::format("{}\n{}\n{}\n{}\n{}", manifest.Path(id), manifest.ObjectOf(id), manifest.Size(id),
                  validator.modified_ns, validator.etag);
  return Quoted(dataset::Sha256Of(AsBytes(version)));
}

FoundObject BucketView::ObjectOf(const Part& part, SampleId id, std::string key) {
  const dataset::Manifest& manifest = part.index.manifest();
  return {.dataset = part.dataset,
          .id = id,
          .key = std::move(key),
          .size = manifest.Size(id),
          .etag = ETagOf(manifest, id),
          .modified_s = manifest.ValidatorOf(id).modified_ns / kNanosecondsInSecond};
}

std::optional<FoundObject> BucketView::Find(std::string_view key) const {
  for (const Part& part : parts_) {
    if (const auto id = part.index.Find(key)) return ObjectOf(part, *id, std::string(key));
  }
  return std::nullopt;
}

std::optional<FoundObject> BucketView::Next(std::string_view from, Walk& walk) const {
  walk.resize(parts_.size());
  const Part* nearest = nullptr;
  std::size_t nearest_place = 0;
  std::string nearest_key;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const std::size_t place = walk[i] = part.index.LowerBound(from, walk[i]);
    if (place == part.index.size()) continue;
    std::string key = part.index.KeyAt(place);
    if (nearest != nullptr && key >= nearest_key) continue;
    nearest = &part;
    nearest_place = place;
    nearest_key = std::move(key);
  }
  if (nearest == nullptr) return std::nullopt;
  return ObjectOf(*nearest, nearest->index.IdAt(nearest_place), std::move(nearest_key));
}

bool BucketView::IsArchive(std::string_view key) const {
  return std::ranges::any_of(parts_, [key](const Part& part) { return part.index.IsArchive(key); });
}

bool BucketView::HasObjects() const {
  return std::ranges::any_of(parts_, [](const Part& part) { return part.index.size() > 0; });
}

void KeySpace::Add(std::string_view bucket, std::string region, std::size_t dataset,
                   KeyIndex index) {
  BucketView& view = buckets_[std::string(bucket)];
  if (view.region_.empty()) view.region_ = std::move(region);
  view.parts_.push_back({.dataset = dataset, .index = std::move(index)});
}

const BucketView* KeySpace::Find(std::string_view bucket) const {
  const auto found = buckets_.find(bucket);
  return found == buckets_.end() ? nullptr : &found->second;
}

std::vector<std::string> KeySpace::names() const {
  std::vector<std::string> names;
  for (const auto& [name, view] : buckets_)
    names.push_back(name);
  return names;
}

}  // namespace optcache::sidecar
