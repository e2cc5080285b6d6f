// Checks the bytes of a manifest once, and reads from them from then on.
//
// The idea: a manifest stays the bytes of its file, and every accessor computes where its answer
// lies. So the parser proves everything first, in an order in which each step may rely on those
// before: header, section table, lengths, strings, numbers, shards. Afterwards no accessor can
// fail, and an id is only CHECKed.
//
// Invariants: each byte of the file lies in the header, the table, a section or padding. Sections
// follow one another in the order of their kinds, each with a checksum, and padding is zero. A
// section of an unknown kind has the same checks and is ignored: it is of a later minor version.
// What only layouts in shards have is in internal/shard_sections.h.

#include "dataset/manifest.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/crc32c.h"
#include "dataset/internal/little_endian.h"
#include "dataset/internal/manifest_layout.h"

namespace optcache::dataset {

using internal::Load;

Status CheckObjectPath(std::string_view path) {
  const auto bad = [&](std::string_view why) {
    return Status(Code::kInvalidArgument, fmt::format("object path \"{}\" {}", path, why));
  };
  if (path.empty()) return bad("is empty");
  if (path.size() > kPathBytesMax) {
    return bad(fmt::format("has {} bytes; the limit is {}", path.size(), kPathBytesMax));
  }
  if (path.front() == '/') return bad("begins with a slash; it must be relative to the source");
  if (path.find('\0') != std::string_view::npos) return bad("contains a NUL byte");
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view component = path.substr(0, slash);
    if (component == "." || component == "..") return bad("has a component \".\" or \"..\"");
    if (slash == std::string_view::npos) return OkStatus();
    path.remove_prefix(slash + 1);
  }
}

// Fills a Manifest from its bytes and checks every one of them.
class ManifestParser {
 public:
  explicit ManifestParser(SharedBytes bytes) { manifest_.bytes_ = std::move(bytes); }

  Result<Manifest> Parse() && {
    RETURN_IF_ERROR(ParseHeader());
    RETURN_IF_ERROR(ParseSections());
    RETURN_IF_ERROR(CheckLengths());
    RETURN_IF_ERROR(CheckStrings());
    RETURN_IF_ERROR(CheckNumbers());
    RETURN_IF_ERROR(CheckShards());
    manifest_.digest_ = Sha256Of(Bytes());
    return std::move(manifest_);
  }

 private:
  using Section = Manifest::Section;

  static Status Damaged(std::uint64_t offset, std::string_view what) {
    return {Code::kDataLoss, fmt::format("manifest: {}, at byte {}", what, offset)};
  }
  template <typename Integer>
  Integer At(std::uint64_t offset) const {
    return Load<Integer>(manifest_.bytes_.data() + offset);
  }
  ByteSpan Bytes() const { return AsBytes(manifest_.bytes()); }

  Status ParseHeader();
  Status ParseSections();
  Status ParseSection(std::uint32_t index, std::uint64_t& end);
  Section* SectionOf(std::uint32_t kind);
  Status CheckLengths() const;
  Status CheckTable(const Section& section, std::string_view name, std::uint64_t count,
                    const StringTableView::Visitor& visit) const;
  Status CheckStrings() const;
  Status CheckNumbers() const;
  Status CheckShards();

  Manifest manifest_;
  std::uint32_t sections_ = 0;
};

Status ManifestParser::ParseHeader() {
  const std::string_view bytes = manifest_.bytes();
  if (bytes.size() < internal::kHeaderBytes || !bytes.starts_with(internal::kMagic)) {
    return Damaged(0, "this is not a manifest file");
  }
  const auto major = At<std::uint16_t>(8);
  if (major != internal::kMajorOfObjects && major != internal::kMajorOfShards) {
    return {Code::kInvalidArgument,
            fmt::format("manifest: version {} cannot be read by this program, which reads version "
                        "{} and {}: build the manifest again or update the program",
                        major, internal::kMajorOfObjects, internal::kMajorOfShards)};
  }
  sections_ = At<std::uint32_t>(28);
  if (sections_ > internal::kSectionsMax) return Damaged(28, "too many sections");
  const std::uint64_t table_bytes = sections_ * internal::kSectionEntryBytes;
  if (bytes.size() - internal::kHeaderBytes < table_bytes) {
    return Damaged(bytes.size(), "the file ends within the section table");
  }
  const std::uint32_t crc = Crc32c(Bytes().subspan(internal::kHeaderBytes, table_bytes),
                                   Crc32c(Bytes().first(internal::kHeaderCrcOffset)));
  if (crc != At<std::uint32_t>(internal::kHeaderCrcOffset)) {
    return Damaged(internal::kHeaderCrcOffset, "checksum of the header does not match");
  }
  if (At<std::uint64_t>(40) != bytes.size()) {
    return Damaged(
        40, fmt::format("the file has {} bytes, not {}", bytes.size(), At<std::uint64_t>(40)));
  }
  const auto order = At<std::uint32_t>(12);
  if (order < 1 || order > 3) return Damaged(12, "unknown order");
  const auto samples = At<std::uint64_t>(16);
  if (samples < 1 || samples > internal::kSamplesMax) return Damaged(16, "number of samples");
  const auto layout = At<std::uint32_t>(internal::kLayoutOffset);
  if ((layout == 0) != (major == internal::kMajorOfObjects) || layout > 2)
    return Damaged(internal::kLayoutOffset, "unknown layout");
  manifest_.layout_ = static_cast<Layout>(layout);
  manifest_.order_ = static_cast<Order>(order);
  manifest_.samples_ = static_cast<std::uint32_t>(samples);
  manifest_.classes_ = At<std::uint32_t>(24);
  manifest_.total_bytes_ = At<std::uint64_t>(32);
  return OkStatus();
}

ManifestParser::Section* ManifestParser::SectionOf(std::uint32_t kind) {
  switch (kind) {
    case internal::kPaths:
      return &manifest_.paths_;
    case internal::kSizes:
      return &manifest_.sizes_;
    case internal::kClassOf:
      return &manifest_.class_of_;
    case internal::kClassNames:
      return &manifest_.class_names_;
    case internal::kModified:
      return &manifest_.modified_;
    case internal::kETags:
      return &manifest_.etags_;
    case internal::kSampleDigests:
      return &manifest_.sample_digests_;
    default:  // null: of a later minor version
      return manifest_.layout_ == Layout::kObjects ? nullptr : manifest_.shards_.Of(kind);
  }
}

// `end` is where the part before this section ends; becomes where this one does.
Status ManifestParser::ParseSection(std::uint32_t index, std::uint64_t& end) {
  const std::uint64_t entry = internal::kHeaderBytes + index * internal::kSectionEntryBytes;
  const auto kind = At<std::uint32_t>(entry);
  const Section section = {At<std::uint64_t>(entry + 8), At<std::uint64_t>(entry + 16)};
  if (index > 0 && kind <= At<std::uint32_t>(entry - internal::kSectionEntryBytes)) {
    return Damaged(entry, "sections out of order");
  }
  const std::uint64_t size = manifest_.bytes_.size();
  if (section.offset != internal::Align(end) || section.offset > size ||
      section.length > size - section.offset) {
    return Damaged(entry + 8, "a section does not lie within the file");
  }
  const ByteSpan padding = Bytes().subspan(end, section.offset - end);
  if (std::ranges::any_of(padding, [](std::byte b) { return b != std::byte{0}; })) {
    return Damaged(end, "padding is not zero");
  }
  if (Crc32c(Bytes().subspan(section.offset, section.length)) != At<std::uint32_t>(entry + 4)) {
    return Damaged(section.offset, fmt::format("checksum of section {} does not match", kind));
  }
  if (Section* known = SectionOf(kind); known != nullptr) *known = section;
  end = section.offset + section.length;
  return OkStatus();
}

Status ManifestParser::ParseSections() {
  std::uint64_t end = internal::kHeaderBytes + sections_ * internal::kSectionEntryBytes;
  for (std::uint32_t i = 0; i < sections_; ++i)
    RETURN_IF_ERROR(ParseSection(i, end));
  if (end != manifest_.bytes_.size()) return Damaged(end, "bytes after the last section");
  return OkStatus();
}

Status ManifestParser::CheckLengths() const {
  struct Expected {
    const Section& section;
    std::uint64_t length;
    bool required;
    std::string_view name;
  };
  const Manifest& m = manifest_;
  const std::uint64_t n = m.samples_;
  const bool has_classes = m.classes_ > 0;
  const std::array<Expected, 4> all = {
      Expected{m.sizes_, n * 8, true, "sizes"},
      Expected{m.class_of_, has_classes ? n * 4 : 0, has_classes, "classes"},
      Expected{m.modified_, n * 8, false, "modification times"},
      Expected{m.sample_digests_, n * 32, false, "digests"}};
  for (const Expected& e : all) {
    const bool absent = e.section.offset == 0;
    if (absent ? e.required : e.section.length != e.length) {
      return Damaged(e.section.offset, fmt::format("the section of {} has {} bytes, not {}", e.name,
                                                   e.section.length, e.length));
    }
  }
  return OkStatus();
}

Status ManifestParser::CheckTable(const Section& section, std::string_view name,
                                  std::uint64_t count,
                                  const StringTableView::Visitor& visit) const {
  Result<StringTableView> table = StringTableView::Open(manifest_.View(section));
  Status status = table ? OkStatus() : table.error();
  if (status.ok() && table->size() != count) {
    return Damaged(section.offset, fmt::format("{} {} instead of {}", table->size(), name, count));
  }
  if (status.ok()) status = table->ForEach(visit);
  if (status.ok()) return status;
  return {Code::kDataLoss, fmt::format("manifest: {} (section at byte {}): {}", name,
                                       section.offset, status.message())};
}

Status ManifestParser::CheckStrings() const {
  if (manifest_.layout_ != Layout::kGroups) {  // else they are keys, see CheckShards
    RETURN_IF_ERROR(CheckTable(
        manifest_.paths_, "paths", manifest_.samples_,
        [](std::uint32_t /*index*/, std::string_view path) { return CheckObjectPath(path); }));
  }
  if (manifest_.etags_.offset != 0) {
    RETURN_IF_ERROR(
        CheckTable(manifest_.etags_, "ETags", manifest_.samples_,
                   [](std::uint32_t /*index*/, std::string_view etag) { return CheckETag(etag); }));
  }
  if (manifest_.classes_ == 0) {
    if (manifest_.class_names_.offset == 0) return OkStatus();
    return Damaged(manifest_.class_names_.offset, "class names of a dataset without classes");
  }
  return CheckTable(manifest_.class_names_, "class names", manifest_.classes_,
                    [](std::uint32_t /*index*/, std::string_view name) {
                      return !name.empty() ? OkStatus()
                                           : Status(Code::kDataLoss, "a class has no name");
                    });
}

Status ManifestParser::CheckNumbers() const {
  const Manifest& m = manifest_;
  ByteCount total = 0;
  for (SampleId sample = 0; sample < m.samples_; ++sample) {
    if (__builtin_add_overflow(total, m.Size(sample), &total)) {
      return Damaged(m.sizes_.offset + sample * std::uint64_t{8}, "sizes add up beyond 64 bits");
    }
    if (m.classes_ > 0 && m.ClassOf(sample) >= m.classes_) {
      return Damaged(m.class_of_.offset + sample * std::uint64_t{4}, "no such class");
    }
  }
  if (total != m.total_bytes_) return Damaged(32, "the sizes do not add up to the total");
  return OkStatus();
}

Status ManifestParser::CheckShards() {
  Manifest& m = manifest_;
  m.objects_ = m.samples_;
  if (m.layout_ == Layout::kObjects) return OkStatus();
  if (m.modified_.present() || m.etags_.present()) {
    return Damaged(std::max(m.modified_.offset, m.etags_.offset),
                   "validators of samples that are parts of archives");
  }
  RETURN_IF_ERROR(internal::CheckShardSections(m.bytes(), m.Samples(), m.shards_));
  m.objects_ = m.Table(m.shards_.paths).size();
  return OkStatus();
}

Result<Manifest> Manifest::Parse(SharedBytes bytes) {
  return ManifestParser(std::move(bytes)).Parse();
}

std::string_view Manifest::View(const Section& section) const {
  return bytes_.view().substr(section.offset, section.length);
}

StringTableView Manifest::Table(const Section& section) const {
  Result<StringTableView> table = StringTableView::Open(View(section));
  CHECK(table.has_value());
  return *table;
}

std::string Manifest::Path(SampleId sample) const {
  return Table(paths_).At(sample);
}

std::string Manifest::NameInSource(SampleId sample) const {
  if (layout_ == Layout::kObjects) return Path(sample);
  std::string path = Path(sample);
  const std::string object = ObjectAt(ObjectOf(sample)).path;
  return path.starts_with(object + "#") ? path : path + " in " + object;
}

ByteCount Manifest::Size(SampleId sample) const {
  CHECK(sample < samples_);
  return Load<std::uint64_t>(bytes_.data() + sizes_.offset + sample * std::uint64_t{8});
}

Validator Manifest::ValidatorOf(SampleId sample) const {
  return ObjectAt(ObjectOf(sample)).validator;
}

internal::SampleSections Manifest::Samples() const {
  return {
      .paths = paths_, .sizes = sizes_, .samples = samples_, .groups = layout_ == Layout::kGroups};
}

Object Manifest::ObjectAt(std::uint32_t index) const {
  CHECK(index < objects_);
  const bool whole = layout_ == Layout::kObjects;
  const auto number = [&](const Section& section) {
    return Load<std::uint64_t>(bytes_.data() + section.offset + index * std::uint64_t{8});
  };
  Object object = {.path = Table(whole ? paths_ : shards_.paths).At(index),
                   .size = number(whole ? sizes_ : shards_.sizes),
                   .validator = {}};
  const Section& modified = whole ? modified_ : shards_.modified;
  const Section& etags = whole ? etags_ : shards_.etags;
  if (modified.present())
    object.validator.modified_ns = static_cast<std::int64_t>(number(modified));
  if (etags.present()) object.validator.etag = Table(etags).At(index);
  return object;
}

std::uint32_t Manifest::ObjectOf(SampleId sample) const {
  CHECK(sample < samples_);
  return layout_ == Layout::kObjects ? sample : internal::ShardOf(bytes(), shards_, sample);
}

std::vector<Member> Manifest::MembersOf(SampleId sample) const {
  CHECK(sample < samples_);
  if (layout_ == Layout::kObjects) return {{.name = {}, .offset = 0, .size = Size(sample)}};
  return internal::MembersOf(bytes(), Samples(), shards_, sample);
}

std::optional<Digest> Manifest::SampleDigest(SampleId sample) const {
  CHECK(sample < samples_);
  if (!has_digests()) return std::nullopt;
  Digest digest = {};
  const ByteSpan all = AsBytes(View(sample_digests_));
  std::ranges::copy(all.subspan(sample * digest.size(), digest.size()), digest.begin());
  return digest;
}

ClassIndex Manifest::ClassOf(SampleId sample) const {
  CHECK(sample < samples_);
  if (classes_ == 0) return kNoClass;
  return Load<std::uint32_t>(bytes_.data() + class_of_.offset + sample * std::uint64_t{4});
}

std::string Manifest::ClassName(ClassIndex index) const {
  return Table(class_names_).At(index);
}

}  // namespace optcache::dataset
