#include "storage/s3_checksums.h"

#include <array>
#include <string_view>
#include <utility>

#include "base/base64.h"

namespace optcache::storage {
namespace {

constexpr std::string_view kTypeHeader = "x-amz-checksum-type";
constexpr std::array<std::pair<std::string_view, SumKind>, 5> kSumHeaders = {{
    {"x-amz-checksum-crc32", SumKind::kCrc32},
    {"x-amz-checksum-crc32c", SumKind::kCrc32c},
    {"x-amz-checksum-crc64nvme", SumKind::kCrc64Nvme},
    {"x-amz-checksum-sha1", SumKind::kSha1},
    {"x-amz-checksum-sha256", SumKind::kSha256},
}};

std::string_view ValueIn(const std::map<std::string, std::string>& headers, std::string_view name) {
  const auto found = headers.find(std::string(name));
  return found == headers.end() ? std::string_view() : found->second;
}

}  // namespace

const std::vector<std::string>& S3ChecksumHeaders() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names = {std::string(kTypeHeader)};
    for (const auto& [name, kind] : kSumHeaders)
      names.emplace_back(name);
    return names;
  }();
  return kNames;
}

std::vector<ToldSum> ParseS3Checksums(const std::map<std::string, std::string>& headers) {
  std::vector<ToldSum> told;
  if (ValueIn(headers, kTypeHeader) == "COMPOSITE") return told;
  for (const auto& [name, kind] : kSumHeaders) {
    // "…-3" is composite, too, of 3 parts; "-" is no character of base64.
    Result<std::string> value = DecodeBase64(ValueIn(headers, name));
    if (value && value->size() == SumBytes(kind))
      told.push_back({.kind = kind, .value = *std::move(value)});
  }
  return told;
}

}  // namespace optcache::storage
