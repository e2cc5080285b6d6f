#include "cache-node/manifests/manifest_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "dataset/manifest.h"

namespace optcache::node {
namespace {

constexpr std::size_t kPieceBytes = 1U << 20U;

Status NotThatDigest(const std::string& file) {
  return {Code::kDataLoss, file + ": these are not the bytes of that digest"};
}

}  // namespace

// --- Coming -------------------------------------------------------------------------------------

Result<std::shared_ptr<ManifestWriter>> ManifestWriter::Open(const std::string& file,
                                                             ByteCount bytes) {
  std::string temporary = file + ".XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) return Error(ErrnoStatus(errno, "cannot write " + file));
  return std::shared_ptr<ManifestWriter>(
      new ManifestWriter(file, std::move(temporary), std::move(fd), bytes));
}

ManifestWriter::ManifestWriter(std::string file, std::string temporary, UniqueFd fd,
                               ByteCount bytes)
    : file_(std::move(file)), temporary_(std::move(temporary)), fd_(std::move(fd)), bytes_(bytes) {}

ManifestWriter::~ManifestWriter() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Status ManifestWriter::Write(std::string_view bytes) {
  if (bytes.size() > bytes_ - written_) {
    return {Code::kInvalidArgument, fmt::format("more came than the {} bytes of the manifest that "
                                                "were said",
                                                bytes_)};
  }
  written_ += bytes.size();
  return WriteAll(fd_.get(), bytes, file_);
}

Status ManifestWriter::Keep(const std::string& digest, std::uint32_t manifest_samples_max) {
  if (written_ != bytes_) {
    return {Code::kInvalidArgument,
            fmt::format("{} of the manifest's {} bytes came", written_, bytes_)};
  }
  ASSIGN_OR_RETURN(SharedBytes bytes, SharedBytes::Map(fd_.get(), file_, bytes_));
  const auto manifest = dataset::Manifest::Parse(std::move(bytes));
  if (!manifest) return {Code::kInvalidArgument, manifest.error().message()};
  if (const std::string found = dataset::ToHex(manifest->digest()); found != digest) {
    return {Code::kInvalidArgument,
            fmt::format("the manifest's digest is {}, not {}", found, digest)};
  }
  if (manifest_samples_max != 0 && manifest->samples() > manifest_samples_max) {
    return {Code::kInvalidArgument,
            fmt::format("the manifest lists {} samples, nodes have memory for {}: give them more "
                        "(node.samples of the chart)",
                        manifest->samples(), manifest_samples_max)};
  }
  if (::fsync(fd_.get()) != 0) return ErrnoStatus(errno, "fsync " + file_);
  if (::rename(temporary_.c_str(), file_.c_str()) != 0) {
    return ErrnoStatus(errno, "rename to " + file_);
  }
  temporary_.clear();
  const UniqueFd folder(
      ::open(file_.substr(0, file_.rfind('/') + 1).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) ::fsync(folder.get());
  return OkStatus();
}

// --- Going --------------------------------------------------------------------------------------

Result<std::shared_ptr<ManifestReader>> ManifestReader::Open(const std::string& file,
                                                             std::string digest,
                                                             OnDamage on_damage) {
  UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat found{};
  if (!fd.valid() || ::fstat(fd.get(), &found) != 0) {
    return Error(ErrnoStatus(errno, "open " + file));
  }
  if (found.st_size == 0) return Error(NotThatDigest(file));
  return std::shared_ptr<ManifestReader>(new ManifestReader(file, std::move(digest),
                                                            std::move(on_damage), std::move(fd),
                                                            static_cast<ByteCount>(found.st_size)));
}

ManifestReader::ManifestReader(std::string file, std::string digest, OnDamage on_damage,
                               UniqueFd fd, ByteCount size)
    : file_(std::move(file)),
      digest_(std::move(digest)),
      on_damage_(std::move(on_damage)),
      fd_(std::move(fd)),
      size_(size) {}

Result<std::string> ManifestReader::Read(std::size_t most) {
  auto piece = ReadOn(most);
  if (!piece) on_damage_(piece.error());
  return piece;
}

Result<std::string> ManifestReader::ReadOn(std::size_t most) {
  std::string piece(std::min<ByteCount>(most, size_ - read_), '\0');
  const ssize_t n = ::pread(fd_.get(), piece.data(), piece.size(), static_cast<off_t>(read_));
  if (n < 0) return Error(ErrnoStatus(errno, "read " + file_));
  if (n == 0) return Error(NotThatDigest(file_));
  piece.resize(static_cast<std::size_t>(n));
  read_ += piece.size();
  sha256_.Update(AsBytes(piece));
  if (read_ == size_ && dataset::ToHex(sha256_.Finish()) != digest_) {
    return Error(NotThatDigest(file_));
  }
  return piece;
}

Result<SharedBytes> MapManifest(const std::string& file, const std::string& digest) {
  // Read first: of a mapped file a failing disk would be no error, but the end of the process.
  ASSIGN_OR_RETURN(const auto reader, ManifestReader::Open(file, digest, [](const Status&) {}));
  for (ByteCount left = reader->size(); left > 0;) {
    ASSIGN_OR_RETURN(const std::string piece, reader->Read(kPieceBytes));
    left -= piece.size();
  }
  return SharedBytes::Map(file, dataset::kManifestBytesMax);
}

}  // namespace optcache::node
