#pragma once

// The immutable list of a dataset's samples, numbered from 0 (docs/formats/manifest.md).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/shared_bytes.h"
#include "dataset/digest.h"
#include "dataset/internal/shard_sections.h"
#include "dataset/members.h"
#include "dataset/order.h"
#include "dataset/string_table.h"
#include "dataset/validator.h"

namespace optcache::dataset {

using ClassIndex = std::uint32_t;
inline constexpr ClassIndex kNoClass = 0xffffffffU;

// What a sample is.
enum class Layout : std::uint32_t {
  kObjects = 0,  // an object
  kGroups = 1,   // several members of an archive, joined as members.h says
  kMembers = 2,  // a member of an archive, or a range of an object of any kind
};

// An object that samples are read from.
struct Object {
  std::string path;  // relative to the source's root
  ByteCount size = 0;
  Validator validator;
};

inline constexpr ByteCount kManifestBytesMax = ByteCount{64} << 30U;
inline constexpr size_t kPathBytesMax = kStringBytesMax;

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

  Layout layout() const { return layout_; }

  // The object's path relative to the source's root, the member's within its archive, the name of a
  // range, or the key of a group, which others may have too; decodes at most 16 strings.
  std::string Path(SampleId sample) const;
  // The sample and the object it is in, for messages: a/1.jpg, 0001 in a.tar, or a.bin#1.
  std::string NameInSource(SampleId sample) const;
  // Of what is handed out.
  ByteCount Size(SampleId sample) const;
  // Of the object that holds the sample.
  Validator ValidatorOf(SampleId sample) const;
  // All that samples are read from: as many objects as samples, or the archives.
  std::uint32_t objects() const { return objects_; }
  Object ObjectAt(std::uint32_t index) const;
  // The object that holds the sample.
  std::uint32_t ObjectOf(SampleId sample) const;
  // What of its object makes the sample, by rising offset: all of it, members of it, or a range.
  std::vector<Member> MembersOf(SampleId sample) const;
  // True if the source was indexed with digests.
  bool has_digests() const { return sample_digests_.offset != 0; }
  // SHA-256 of the sample's bytes, if there are digests.
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
  using Section = internal::Section;
  friend class ManifestParser;

  Manifest() = default;
  std::string_view View(const Section& section) const;
  StringTableView Table(const Section& section) const;
  internal::SampleSections Samples() const;

  SharedBytes bytes_;
  Digest digest_ = {};
  Order order_ = Order::kList;
  Layout layout_ = Layout::kObjects;
  std::uint32_t samples_ = 0;
  std::uint32_t objects_ = 0;
  std::uint32_t classes_ = 0;
  ByteCount total_bytes_ = 0;
  Section paths_, sizes_, class_of_, class_names_, modified_, etags_, sample_digests_;
  internal::ShardSections shards_;
};

}  // namespace optcache::dataset
