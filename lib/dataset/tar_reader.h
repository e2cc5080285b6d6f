#pragma once

// Finds the members of a tar archive by its headers alone: POSIX.1-1988 (ustar), POSIX.1-2001 (pax)
// and GNU tar, as Python's tarfile reads them. Pure: says which bytes it wants next.

#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace optcache::dataset {

inline constexpr ByteCount kTarBlockBytes = 512;
inline constexpr ByteCount kTarExtensionBytesMax = 1_MiB;  // of one long name or pax header
inline constexpr size_t kTarNameBytesMax = 4096;
inline constexpr ByteCount kTarBytesMax = ByteCount{1} << 62U;

// A regular file in an archive.
struct TarFile {
  std::string name;      // bytes as the archive has them
  ByteCount offset = 0;  // of its data
  ByteCount size = 0;
  friend bool operator==(const TarFile&, const TarFile&) = default;
};

// Goes through one archive from header to header. Ends at the first block of zeros, as tarfile
// does, or at the archive's end. Not thread-safe: a value.
class TarReader {
 public:
  // kDataLoss if an archive cannot have this many bytes.
  static Result<TarReader> Open(ByteCount archive_bytes);

  bool done() const { return done_; }
  // Of one that is done: a block of zeros ended it, as writers put it there. Otherwise its bytes
  // did right behind a member, and nothing tells whether others followed before it was cut.
  bool ended() const { return ended_; }
  // Which bytes come next: this many from there on. They lie within the archive; not when done.
  ByteCount position() const { return position_; }
  ByteCount wanted() const { return wanted_; }

  // Takes the bytes that are wanted, CHECKed for their number; a file if they end its header.
  // kDataLoss: this is no tar archive, it is damaged or cut short; kInvalidArgument: compressed, or
  // a file that does not lie in one piece. Both name the offset and what to do; nothing may follow.
  Result<std::optional<TarFile>> Take(ByteSpan bytes);

 private:
  explicit TarReader(ByteCount archive_bytes) : archive_bytes_(archive_bytes) {}

  enum class Expect { kHeader, kLongName, kLongLink, kPax, kGlobalPax };
  struct Extensions {
    std::optional<std::string> name;
    std::optional<ByteCount> size;
    bool sparse = false;
  };
  struct Header;

  Status Broken(std::string_view what) const;
  Result<Header> Parse(ByteSpan block) const;
  Result<std::optional<TarFile>> TakeHeader(ByteSpan block);
  Result<std::optional<TarFile>> TakeFile(const Header& header);
  Status BeginExtension(const Header& header, Expect what);
  Status TakeExtension(ByteSpan bytes);
  Status TakePax(std::string_view records);
  Status TakeRecord(std::string_view key, std::string_view value);
  Status Expecting(Expect what, ByteCount position, ByteCount wanted);

  ByteCount archive_bytes_;
  ByteCount position_ = 0;
  ByteCount wanted_ = kTarBlockBytes;
  bool done_ = false;
  bool ended_ = false;
  Expect expect_ = Expect::kHeader;
  ByteCount extension_bytes_ = 0;  // of the header that is expected, without padding
  Extensions extensions_;          // for the next file
};

}  // namespace optcache::dataset
