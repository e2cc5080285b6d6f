// Walks a tar archive from header to header, as a state machine that is given the bytes it wants.
//
//   kHeader ─► a file, folder or link: Expecting(kHeader) behind its data
//       │ ▲
//       ▼ │ extended header: its content is taken, and holds for the next file
//   kLongName, kLongLink (GNU), kPax, kGlobalPax
//
// The idea: data between headers is never wanted, so the caller may leave it out of its reads. What
// is kept between headers is bounded: a name and a size, from extended headers of at most 1 MiB.
// Where several headers name one file, the first wins, as in Python's tarfile.
//
// Invariant: the bytes that are wanted lie within the archive (Expecting), and `position_` only
// rises, so the walk ends. What cannot be read by ranges is refused: compressed archives, and
// sparse files.

#include "dataset/tar_reader.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/check.h"
#include "base/whole_number.h"

namespace optcache::dataset {
namespace {

// Fields of a header block.
constexpr size_t kNameAt = 0, kNameBytes = 100;
constexpr size_t kSizeAt = 124, kNumberBytes = 12;
constexpr size_t kChecksumAt = 148, kChecksumBytes = 8;
constexpr size_t kTypeAt = 156;
constexpr size_t kMagicAt = 257;
constexpr size_t kPrefixAt = 345, kPrefixBytes = 155;

ByteCount Padded(ByteCount bytes) {
  return (bytes + kTarBlockBytes - 1) / kTarBlockBytes * kTarBlockBytes;
}

std::string_view UpToNul(std::string_view field) {
  return field.substr(0, field.find('\0'));
}

// Octal digits, perhaps between blanks, or base 256 where the first bit is set (GNU). Nothing:
// neither, negative, or beyond 64 bits.
std::optional<std::uint64_t> Number(std::string_view field) {
  const auto first = static_cast<unsigned char>(field[0]);
  if ((first & 0x80U) != 0) {
    if (first != 0x80) return std::nullopt;
    std::uint64_t value = 0;
    for (const char c : field.substr(1)) {
      if (value >> 56U != 0) return std::nullopt;
      value = (value << 8U) | static_cast<unsigned char>(c);
    }
    return value;
  }
  std::string_view digits = UpToNul(field);
  while (digits.starts_with(' '))
    digits.remove_prefix(1);
  while (digits.ends_with(' '))
    digits.remove_suffix(1);
  if (digits.empty()) return 0;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// Old writers summed signed bytes; both are right.
bool ChecksumMatches(std::string_view block) {
  const std::optional<std::uint64_t> told = Number(block.substr(kChecksumAt, kChecksumBytes));
  std::uint64_t sum = 0;
  std::int64_t signed_sum = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    const bool in_field = i >= kChecksumAt && i < kChecksumAt + kChecksumBytes;
    const char c = in_field ? ' ' : block[i];
    sum += static_cast<unsigned char>(c);
    signed_sum += static_cast<signed char>(c);
  }
  return told && (*told == sum || static_cast<std::int64_t>(*told) == signed_sum);
}

bool IsCompressed(std::string_view block) {
  return block.starts_with("\x1f\x8b") || block.starts_with("BZh") ||
         block.starts_with(
             "\xfd"
             "7zXZ") ||
         block.starts_with("\x28\xb5\x2f\xfd");
}

}  // namespace

struct TarReader::Header {
  char type = '0';
  std::string name;
  ByteCount size = 0;

  bool file() const { return type == '0' || type == '\0' || type == '7'; }
  // Directories, links and devices have no data, whatever their size says; unknown types have.
  bool has_data() const {
    return file() || std::string_view("123456").find(type) == std::string_view::npos;
  }
};

Status TarReader::Broken(std::string_view what) const {
  return {Code::kDataLoss,
          fmt::format("tar archive: {}, at byte {}: pack or upload it again", what, position_)};
}

Status TarReader::Expecting(Expect what, ByteCount position, ByteCount wanted) {
  expect_ = what;
  position_ = position;
  wanted_ = wanted;
  if (what == Expect::kHeader && position_ == archive_bytes_) {
    done_ = true;
    return OkStatus();
  }
  if (position_ > archive_bytes_ || wanted_ > archive_bytes_ - position_)
    return Broken(fmt::format("it is cut short at its {} bytes", archive_bytes_));
  return OkStatus();
}

Result<TarReader> TarReader::Open(ByteCount archive_bytes) {
  if (archive_bytes < kTarBlockBytes || archive_bytes > kTarBytesMax) {
    return Error(
        Code::kDataLoss,
        fmt::format("tar archive: {} bytes are none: pack or upload it again", archive_bytes));
  }
  return TarReader(archive_bytes);
}

Result<std::optional<TarFile>> TarReader::Take(ByteSpan bytes) {
  CHECK(!done_ && bytes.size() == wanted_);
  if (expect_ == Expect::kHeader) return TakeHeader(bytes);
  RETURN_IF_ERROR(TakeExtension(bytes));
  return std::nullopt;
}

Result<TarReader::Header> TarReader::Parse(ByteSpan bytes) const {
  const std::string_view block = AsText(bytes);
  if (position_ == 0 && IsCompressed(block)) {
    return Error(
        Code::kInvalidArgument,
        "tar archive: it is compressed, so no part of it can be read alone: unpack it to a "
        "plain .tar (images in it are compressed already)");
  }
  if (!ChecksumMatches(block)) {
    return Error(Broken(position_ == 0 ? "this is no tar archive"
                                       : "the checksum of a header does not match"));
  }
  const std::optional<std::uint64_t> size = Number(block.substr(kSizeAt, kNumberBytes));
  if (!size || *size > archive_bytes_) return Error(Broken("a size beyond the archive's end"));
  Header header = {.type = block[kTypeAt],
                   .name = std::string(UpToNul(block.substr(kNameAt, kNameBytes))),
                   .size = *size};
  // "ustar" and a NUL is POSIX; GNU has blanks there and other things in place of the prefix.
  const bool posix = block.substr(kMagicAt, 6) == std::string_view("ustar\0", 6);
  const std::string_view prefix = UpToNul(block.substr(kPrefixAt, kPrefixBytes));
  if (posix && !prefix.empty()) header.name = fmt::format("{}/{}", prefix, header.name);
  return header;
}

Result<std::optional<TarFile>> TarReader::TakeHeader(ByteSpan block) {
  if (std::ranges::all_of(block, [](std::byte b) { return b == std::byte{0}; })) {
    done_ = true;
    ended_ = true;
    return std::nullopt;
  }
  ASSIGN_OR_RETURN(const Header header, Parse(block));
  switch (header.type) {
    case 'L':
      RETURN_IF_ERROR(BeginExtension(header, Expect::kLongName));
      return std::nullopt;
    case 'K':
      RETURN_IF_ERROR(BeginExtension(header, Expect::kLongLink));
      return std::nullopt;
    case 'x':
    case 'X':
      RETURN_IF_ERROR(BeginExtension(header, Expect::kPax));
      return std::nullopt;
    case 'g':
      RETURN_IF_ERROR(BeginExtension(header, Expect::kGlobalPax));
      return std::nullopt;
    default:
      return TakeFile(header);
  }
}

Result<std::optional<TarFile>> TarReader::TakeFile(const Header& header) {
  TarFile file = {.name = extensions_.name.value_or(header.name),
                  .offset = position_ + kTarBlockBytes,
                  .size = extensions_.size.value_or(header.size)};
  if (header.type == 'S' || extensions_.sparse) {
    return Error(Code::kInvalidArgument,
                 fmt::format("tar archive: {} is sparse, so it does not lie in one piece: pack the "
                             "archive without --sparse",
                             file.name));
  }
  // The oldest archives have folders as files whose names end with a slash.
  const bool folder = header.type == '\0' && header.name.ends_with('/');
  const bool is_file = header.file() && !folder;
  if (is_file && (file.name.empty() || file.name.size() > kTarNameBytesMax)) {
    return Error(
        Broken(fmt::format("a name of {} bytes, not 1 to {}", file.name.size(), kTarNameBytesMax)));
  }
  extensions_ = {};
  const ByteCount data = header.has_data() && !folder ? file.size : 0;
  if (data > archive_bytes_ - file.offset)
    return Error(Broken("a file that ends after the archive"));
  // The padding of the last file may be missing.
  const ByteCount next = std::min(file.offset + Padded(data), archive_bytes_);
  RETURN_IF_ERROR(Expecting(Expect::kHeader, next, kTarBlockBytes));
  if (!is_file) return std::nullopt;
  return file;
}

Status TarReader::BeginExtension(const Header& header, Expect what) {
  if (header.size == 0 || header.size > kTarExtensionBytesMax) {
    return Broken(fmt::format("an extended header of {} bytes, not 1 to {}", header.size,
                              kTarExtensionBytesMax));
  }
  extension_bytes_ = header.size;
  return Expecting(what, position_ + kTarBlockBytes, Padded(header.size));
}

Status TarReader::TakeExtension(ByteSpan bytes) {
  const std::string_view content = AsText(bytes).substr(0, extension_bytes_);
  // Of several names for one file, tarfile takes the first one.
  if (expect_ == Expect::kLongName && !extensions_.name) {
    extensions_.name = std::string(UpToNul(content));
  } else if (expect_ == Expect::kPax || expect_ == Expect::kGlobalPax) {
    RETURN_IF_ERROR(TakePax(content));
  }
  return Expecting(Expect::kHeader, position_ + wanted_, kTarBlockBytes);
}

// Records of "LENGTH KEY=VALUE\n", where the length counts all of it.
Status TarReader::TakePax(std::string_view records) {
  const Extensions before = extensions_;
  extensions_ = {};
  while (!records.empty() && records.front() != '\0') {
    size_t length = 0;
    const auto [end, error] =
        std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<size_t>(end - records.data());
    if (error != std::errc() || length > records.size() || length < digits + 3 ||
        records[digits] != ' ' || records[length - 1] != '\n') {
      return Broken("a malformed pax header");
    }
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) return Broken("a pax record without =");
    RETURN_IF_ERROR(TakeRecord(record.substr(0, equals), record.substr(equals + 1)));
    records.remove_prefix(length);
  }
  // What an earlier header said goes before.
  if (before.name) extensions_.name = before.name;
  if (before.size) extensions_.size = before.size;
  extensions_.sparse = extensions_.sparse || before.sparse;
  return OkStatus();
}

Status TarReader::TakeRecord(std::string_view key, std::string_view value) {
  const bool of_interest = key == "path" || key == "size" || key.starts_with("GNU.sparse.");
  if (!of_interest) return OkStatus();
  if (expect_ == Expect::kGlobalPax)
    return Broken(fmt::format("a {} for all files of the archive", key));
  if (key == "path") {
    while (value.ends_with('/'))
      value.remove_suffix(1);
    extensions_.name = std::string(value);
  } else if (key == "size") {
    const auto size = ParseWholeNumber<ByteCount>(value, archive_bytes_);
    if (!size) return Broken("a size beyond the archive's end");
    extensions_.size = size;
  } else {
    extensions_.sparse = true;
  }
  return OkStatus();
}

}  // namespace optcache::dataset
