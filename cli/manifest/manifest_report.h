#pragma once

// What `optcache manifest` prints, as text for people and as JSON. Pure.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/manifest.h"
#include "storage/index.h"
#include "storage/verify.h"

namespace optcache::cli {

struct SizeQuantile {
  std::string_view name;  // "p50"
  double share = 0;       // of the samples that are at most so large
  ByteCount size = 0;
};

// Smallest, median, 90th and 99th percentile (nearest rank) and largest size.
std::array<SizeQuantile, 5> SizeQuantiles(const dataset::Manifest& manifest);

// The digest as it is written everywhere: "sha256:" and 64 hexadecimal digits.
std::string DigestText(const dataset::Manifest& manifest);

std::string ManifestAsText(std::string_view file, const dataset::Manifest& manifest);
std::string ManifestAsJson(const dataset::Manifest& manifest);

// What else there is to say of an index, a sentence each: how the order was chosen, what was left
// out, is missing, or may change unnoticed.
std::vector<std::string> BuildNotes(const storage::IndexReport& report);

std::string VerifyAsText(const storage::VerifyReport& report);

}  // namespace optcache::cli
