#pragma once

// The fixed parts of a manifest file, shared by its writer and its parser.
// docs/formats/manifest.md.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace optcache::dataset::internal {

inline constexpr std::string_view kMagic = "OPTCMANI";
inline constexpr std::uint16_t kMajorOfObjects = 1;  // every sample is an object
inline constexpr std::uint16_t kMajorOfShards = 2;   // samples are parts of archives
inline constexpr std::uint16_t kMinorVersion = 0;
inline constexpr size_t kHeaderBytes = 64;
inline constexpr size_t kLayoutOffset = 48;
inline constexpr size_t kHeaderCrcOffset = 60;
inline constexpr size_t kSectionEntryBytes = 24;
inline constexpr std::uint32_t kSectionsMax = 32;
inline constexpr std::uint64_t kSamplesMax = 0xfffffffeU;
inline constexpr std::uint64_t kAlignment = 8;
inline constexpr std::uint64_t kShardBytesMax = std::uint64_t{1} << 62U;

enum SectionKind : std::uint32_t {
  kPaths = 1,
  kSizes = 2,
  kClassOf = 3,
  kClassNames = 4,
  kModified = 5,
  kETags = 6,
  kSampleDigests = 7,
  kShardPaths = 8,
  kShardSizes = 9,
  kShardModified = 10,
  kShardETags = 11,
  kShardOf = 12,
  kFirstMember = 13,
  kMemberOffsets = 14,
  kMemberSizes = 15,
  kMemberNames = 16,
};

inline std::uint64_t Align(std::uint64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace optcache::dataset::internal
