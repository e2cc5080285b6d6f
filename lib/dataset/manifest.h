#pragma once

// The immutable list of a dataset's samples, numbered from 0 (docs/formats/manifest.md).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/shared_bytes.h"
#include "dataset/digest.h"
#include "dataset/string_table.h"
#include "dataset/validator.h"

namespace optcache::dataset {

using ClassIndex = std::uint32_t;
inline constexpr ClassIndex kNoClass = 0xffffffffU;

// How the samples came by their numbers.
enum class Order : std::uint32_t {
  kImageFolder = 1,  // class folders, as torchvision.datasets.ImageFolder
  kPath = 2,         // sorted paths, no classes
  kList = 3,         // as the source lists them, no classes
};
// "image-folder", "path", "list".
std::string_view OrderName(Order order);

inline constexpr ByteCount kManifestBytesMax = ByteCount{64} << 30U;
inline constexpr size_t kPathBytesMax = kStringBytesMax;
inline constexpr size_t kETagBytesMax = 256;

// kInvalidArgument says why `path` may not name an object: it must stay below the source's root, as
// docs/formats/manifest.md has it.
Status CheckObjectPath(std::string_view path);

// Keeps the file's bytes as they are and decodes on demand, so it costs in memory what it costs on
// disk, or, over a mapped file, what of it is read. Made by ManifestBuilder or Parse; moves, does
// not copy. Thread-safe: nothing changes it. Ids and class indices are CHECKed.
class Manifest {
 public:
  // Takes over the bytes of a manifest file and checks all of them, so that nothing below can fail.
  // The bytes may come from anywhere. kDataLoss: damaged or not a manifest, says where;
  // kInvalidArgument: of another major version.
  static Result<Manifest> Parse(SharedBytes bytes);

  Manifest(Manifest&&) = default;
  Manifest& operator=(Manifest&&) = default;
  Manifest(const Manifest&) = delete;
  Manifest& operator=(const Manifest&) = delete;
  ~Manifest() = default;

  std::uint32_t samples() const { return samples_; }
  Order order() const { return order_; }
  ByteCount total_bytes() const { return total_bytes_; }

  // The object's path relative to the source's root; decodes at most 16 strings.
  std::string Path(SampleId sample) const;
  ByteCount Size(SampleId sample) const;
  Validator ValidatorOf(SampleId sample) const;
  // SHA-256 of the sample's bytes, if the source was indexed with digests.
  std::optional<Digest> SampleDigest(SampleId sample) const;

  // 0 where the dataset has no classes; then every sample is of class kNoClass.
  std::uint32_t classes() const { return classes_; }
  ClassIndex ClassOf(SampleId sample) const;
  std::string ClassName(ClassIndex index) const;

  // The file: what Parse takes, byte for byte.
  std::string_view bytes() const { return bytes_.view(); }
  const SharedBytes& shared_bytes() const { return bytes_; }
  // Names the manifest: the SHA-256 of bytes().
  const Digest& digest() const { return digest_; }

 private:
  // Where a section lies in bytes_; absent ones have length 0.
  struct Section {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };
  friend class ManifestParser;

  Manifest() = default;
  std::string_view View(const Section& section) const;
  StringTableView Table(const Section& section) const;

  SharedBytes bytes_;
  Digest digest_ = {};
  Order order_ = Order::kList;
  std::uint32_t samples_ = 0;
  std::uint32_t classes_ = 0;
  ByteCount total_bytes_ = 0;
  Section paths_, sizes_, class_of_, class_names_, modified_, etags_, sample_digests_;
};

}  // namespace optcache::dataset
