#pragma once

// What a request to the manifest server means. Pure.

#include <optional>
#include <string>
#include <string_view>

namespace optcache::node {

struct ManifestPath {
  enum class Kind { kByDigest, kByDataset, kOffer, kPut } kind = Kind::kByDigest;
  std::string name_space;
  std::string dataset;  // "namespace/name"
  std::string digest;   // kOffer: whether that one would be taken
};

// Nothing if there is no such page. `path` is without the query.
std::optional<ManifestPath> ParseManifestPath(std::string_view method, std::string_view path);

}  // namespace optcache::node
