// Any method, path and token at a node's manifest server: understood or refused, never more.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cache-node/manifests/manifest_path.h"
#include "cache-node/trust/token_check.h"
#include "dataset/digest.h"

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

void CheckPath(std::string_view method, std::string_view path) {
  using optcache::node::ManifestPath;
  const auto parsed = optcache::node::ParseManifestPath(method, path);
  if (!parsed) return;
  const bool by_dataset = parsed->kind == ManifestPath::Kind::kByDataset;
  Check(by_dataset ? parsed->digest.empty() : optcache::dataset::IsHexDigest(parsed->digest));
  if (parsed->kind == ManifestPath::Kind::kByDigest) return Check(parsed->dataset.empty());
  Check(parsed->dataset.starts_with(parsed->name_space + "/"));
  Check(!parsed->name_space.contains('/') && parsed->dataset.size() <= 2 * 253 + 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t blank = text.find(' ');
  if (blank != std::string_view::npos) CheckPath(text.substr(0, blank), text.substr(blank + 1));
  CheckPath("GET", text);
  CheckPath("PUT", text);
  if (const auto expiry = optcache::node::ExpiryOf(text)) Check(std::isfinite(*expiry));
  return 0;
}
