#include "cache-node/manifests/manifest_path.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "dataset/digest.h"

namespace optcache::node {
namespace {

constexpr std::size_t kNameMax = 253;  // of a Kubernetes object

bool IsName(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= kNameMax && is_letter(text.front()) &&
         is_letter(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return is_letter(c) || c == '-' || c == '.'; });
}

std::vector<std::string_view> SplitPath(std::string_view path) {
  std::vector<std::string_view> parts;
  while (path.starts_with('/') && parts.size() < 8) {
    path.remove_prefix(1);
    parts.push_back(path.substr(0, path.find('/')));
    path.remove_prefix(parts.back().size());
  }
  return parts;
}

}  // namespace

std::optional<ManifestPath> ParseManifestPath(std::string_view method, std::string_view path) {
  const std::vector<std::string_view> parts = SplitPath(path);
  const bool get = method == "GET";
  if (get && parts.size() == 3 && parts[0] == "v1" && parts[1] == "manifests") {
    if (!dataset::IsHexDigest(parts[2])) return std::nullopt;
    return ManifestPath{.kind = ManifestPath::Kind::kByDigest, .digest = std::string(parts[2])};
  }
  const bool of_dataset = parts.size() >= 5 && parts[0] == "v1" && parts[1] == "datasets" &&
                          IsName(parts[2]) && IsName(parts[3]);
  if (!of_dataset) return std::nullopt;
  ManifestPath parsed{.kind = ManifestPath::Kind::kByDataset,
                      .name_space = std::string(parts[2]),
                      .dataset = fmt::format("{}/{}", parts[2], parts[3])};
  if (get && parts.size() == 5 && parts[4] == "manifest") return parsed;
  const bool of_digest =
      parts.size() == 6 && parts[4] == "manifests" && dataset::IsHexDigest(parts[5]);
  if (!of_digest || (!get && method != "PUT")) return std::nullopt;
  parsed.kind = get ? ManifestPath::Kind::kOffer : ManifestPath::Kind::kPut;
  parsed.digest = parts[5];
  return parsed;
}

}  // namespace optcache::node
