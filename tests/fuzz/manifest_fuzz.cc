// A manifest may come from anywhere: whatever Parse accepts, every accessor must survive.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/crc32c.h"
#include "dataset/manifest.h"

namespace optcache::dataset {
namespace {

constexpr size_t kCrcOffset = 60;
constexpr size_t kHeaderBytes = 64;
constexpr size_t kSectionBytes = 24;

template <typename Integer>
Integer Load(const std::string& bytes, size_t at) {
  Integer value = 0;
  for (size_t i = sizeof(Integer); i-- > 0;) {
    value = static_cast<Integer>((value << 8U) | static_cast<unsigned char>(bytes[at + i]));
  }
  return value;
}

void Store(std::string& bytes, size_t at, std::uint32_t value) {
  for (size_t i = 0; i < 4; ++i)
    bytes[at + i] = static_cast<char>(value >> (8 * i));
}

// Makes all checksums right, so that the fuzzer gets behind them.
void Seal(std::string& bytes) {
  if (bytes.size() < kHeaderBytes) return;
  const size_t sections = static_cast<unsigned char>(bytes[28]);
  if (kHeaderBytes + sections * kSectionBytes > bytes.size()) return;
  for (size_t i = 0; i < sections; ++i) {
    const size_t entry = kHeaderBytes + i * kSectionBytes;
    const auto offset = Load<std::uint64_t>(bytes, entry + 8);
    const auto length = Load<std::uint64_t>(bytes, entry + 16);
    if (offset > bytes.size() || length > bytes.size() - offset) continue;
    Store(bytes, entry + 4, Crc32c(AsBytes(bytes).subspan(offset, length)));
  }
  const ByteSpan all = AsBytes(bytes);
  Store(bytes, kCrcOffset,
        Crc32c(all.subspan(kHeaderBytes, sections * kSectionBytes), Crc32c(all.first(kCrcOffset))));
}

// What is read lies within its object, and what is handed out is as long as told.
void UsePlaces(const Manifest& manifest, SampleId sample) {
  const Object object = manifest.ObjectAt(manifest.ObjectOf(sample));
  const std::vector<Member> members = manifest.MembersOf(sample);
  ByteCount end = 0;
  ByteCount size = 0;
  for (const Member& member : members) {
    CHECK(member.offset >= end && member.size <= object.size - member.offset);
    end = member.offset + member.size;
    size += member.size + MemberPadding(member.size);
  }
  if (manifest.layout() == Layout::kGroups) {
    CHECK(manifest.Size(sample) == size + MembersHead(manifest.Path(sample), members).size());
  } else {
    CHECK(manifest.Size(sample) == members.front().size);
  }
}

void Use(const Manifest& manifest) {
  ByteCount total = 0;
  for (SampleId sample = 0; sample < manifest.samples(); ++sample) {
    if (manifest.layout() != Layout::kGroups) CHECK(CheckObjectPath(manifest.Path(sample)).ok());
    UsePlaces(manifest, sample);
    CHECK(CheckETag(manifest.ValidatorOf(sample).etag).ok());
    CHECK(CheckETag(manifest.ObjectAt(manifest.ObjectOf(sample)).validator.etag).ok());
    if (manifest.classes() > 0) CHECK(!manifest.ClassName(manifest.ClassOf(sample)).empty());
    (void)manifest.SampleDigest(sample);
    total += manifest.Size(sample);
  }
  CHECK(total == manifest.total_bytes());
}

}  // namespace
}  // namespace optcache::dataset

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using optcache::dataset::Manifest;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (const auto as_is = Manifest::Parse(bytes)) optcache::dataset::Use(*as_is);
  optcache::dataset::Seal(bytes);
  if (const auto sealed = Manifest::Parse(std::move(bytes))) optcache::dataset::Use(*sealed);
  return 0;
}
