// Finds what is in archives by few reads: headers, or an index file beside the archive.
//
// The idea: headers are 512 bytes between data of any length. A Window reads ahead: 1 MiB where
// headers follow closely, since bytes that nobody needs cost less than another request, and 16 KiB
// at first and after a jump over long data. An index file needs three short reads instead of all
// headers, but may be of an older archive. So it is believed only if its last member's header is in
// the archive as it says, and nothing but the end follows.
//
// Threads take archives in turn (`next`). An index file that does not fit is noted, and the headers
// are read; an error of the store ends everything.

#include "storage/tar_index.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/mutex.h"
#include "dataset/tar_idx.h"
#include "storage/internal/blocking_read.h"
#include "storage/internal/first_error.h"

namespace optcache::storage {
namespace {

using dataset::TarFile;
using dataset::TarReader;

// Over a network, reading this many bytes that nobody needs costs about as much as another request.
constexpr ByteCount kGapWorthARequest = 256_KiB;
constexpr ByteCount kWindowOfMany = 1_MiB;
constexpr ByteCount kWindowOfOne = 16_KiB;  // a few headers with small data between

// A part of an archive, which moves on with what is asked for. Not thread-safe: one owner.
class Window {
 public:
  Window(ObjectStore& store, const ListedObject& archive, Deadline deadline)
      : store_(store), archive_(archive), deadline_(deadline) {}

  // This many bytes from `position` on, which never goes back; they lie within the archive.
  Result<ByteSpan> At(ByteCount position, ByteCount length) {
    const ByteCount end = begin_ + bytes_.size();
    if (position + length > end) RETURN_IF_ERROR(MoveTo(position, length, end));
    return ByteSpan(bytes_).subspan(position - begin_, length);
  }

 private:
  Status MoveTo(ByteCount position, ByteCount length, ByteCount end) {
    const ByteCount gap = position > end ? position - end : 0;
    const bool many = begin_ + bytes_.size() > 0 && gap < kGapWorthARequest;
    const ByteCount left = archive_.info->size - position;
    bytes_.resize(std::min(std::max(length, many ? kWindowOfMany : kWindowOfOne), left));
    begin_ = position;
    return internal::ReadAndWait(store_, {.object = archive_.path,
                                          .offset = position,
                                          .destination = MutableByteSpan(bytes_),
                                          .object_size = archive_.info->size,
                                          .validator = archive_.info->validator,
                                          .deadline = deadline_});
  }

  ObjectStore& store_;
  const ListedObject& archive_;
  const Deadline deadline_;
  ByteCount begin_ = 0;
  std::vector<std::byte> bytes_;
};

Result<std::vector<std::byte>> ReadPart(ObjectStore& store, const ListedObject& object,
                                        ByteCount offset, ByteCount length, Deadline deadline) {
  std::vector<std::byte> bytes(length);
  RETURN_IF_ERROR(internal::ReadAndWait(store, {.object = object.path,
                                                .offset = offset,
                                                .destination = MutableByteSpan(bytes),
                                                .object_size = object.info->size,
                                                .validator = object.info->validator,
                                                .deadline = deadline}));
  return bytes;
}

enum class Tail { kOther, kUnended, kEnded };

// Whether the archive has this member and nothing behind it, and an end after that.
Result<Tail> TailAfter(ObjectStore& store, const ListedObject& archive, const TarFile& last,
                       Deadline deadline) {
  const ByteCount header_at = last.offset - dataset::kTarBlockBytes;
  ASSIGN_OR_RETURN(const auto header,
                   ReadPart(store, archive, header_at, dataset::kTarBlockBytes, deadline));
  Result<TarReader> reader = TarReader::Open(archive.info->size - header_at);
  if (!reader) return Tail::kOther;
  const Result<std::optional<TarFile>> file = reader->Take(header);
  if (!file || !*file || (*file)->size != last.size) return Tail::kOther;
  if (reader->done()) return Tail::kUnended;
  const ByteCount rest_at = header_at + reader->position();
  ASSIGN_OR_RETURN(const auto rest,
                   ReadPart(store, archive, rest_at, dataset::kTarBlockBytes, deadline));
  const bool zeros = std::ranges::all_of(rest, [](std::byte byte) { return byte == std::byte{0}; });
  return zeros ? Tail::kEnded : Tail::kOther;
}

bool IsOfStore(Code code) {
  return code != Code::kInvalidArgument && code != Code::kNotFound && code != Code::kConflict;
}

}  // namespace

Result<TarListing> ReadTarIdx(ObjectStore& store, const ListedObject& idx,
                              const ListedObject& archive, Deadline deadline) {
  CHECK(archive.info.has_value());
  ListedObject file = idx;
  if (!file.info) {
    ASSIGN_OR_RETURN(file.info, store.Stat(idx.path, deadline));
  }
  const ByteCount size = file.info->size;
  if (size == 0 || size > dataset::kTarIdxBytesMax) {
    return Error(Code::kInvalidArgument, fmt::format("{} bytes, where an index has 1 to {}", size,
                                                     dataset::kTarIdxBytesMax));
  }
  ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadPart(store, file, 0, size, deadline));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  ASSIGN_OR_RETURN(std::vector<TarFile> files, dataset::ParseTarIdx(text, archive.info->size));
  if (files.empty()) return Error(Code::kInvalidArgument, "names no member");
  ASSIGN_OR_RETURN(const Tail tail, TailAfter(store, archive, files.back(), deadline));
  if (tail == Tail::kOther)
    return Error(Code::kInvalidArgument, "the archive ends otherwise: make it again");
  return TarListing{.files = std::move(files), .ended = tail == Tail::kEnded};
}

Result<TarListing> IndexTar(ObjectStore& store, const ListedObject& archive, Deadline deadline) {
  CHECK(archive.info.has_value());
  const auto of_archive = [&](Status status) {
    return Error(std::move(status).WithContext(store.name() + ": " + archive.path));
  };
  Result<TarReader> reader = TarReader::Open(archive.info->size);
  if (!reader) return of_archive(std::move(reader).error());
  Window window(store, archive, deadline);
  TarListing listing;
  while (!reader->done()) {
    ASSIGN_OR_RETURN(const ByteSpan bytes, window.At(reader->position(), reader->wanted()));
    Result<std::optional<TarFile>> file = reader->Take(bytes);
    if (!file) return of_archive(std::move(file).error());
    if (*file) listing.files.push_back(**std::move(file));
  }
  listing.ended = reader->ended();
  return listing;
}

Result<TarContents> IndexTars(ObjectStore& store, const std::vector<ListedObject>& archives,
                              const TarIndexOptions& options) {
  TarContents contents;
  contents.files.resize(archives.size());
  std::atomic<size_t> next = 0;
  std::atomic<std::uint64_t> done = 0;
  internal::FirstError error;
  Mutex mutex;  // of unfit_idx_files and unended
  // Nothing if there is no index file that fits.
  const auto by_idx = [&](const ListedObject& archive) -> Result<TarListing> {
    const auto idx = options.idx_files.find(dataset::TarIdxPath(archive.path));
    if (idx == options.idx_files.end()) return TarListing();
    Result<TarListing> listing = ReadTarIdx(store, idx->second, archive, options.deadline);
    if (listing || IsOfStore(listing.error().code())) return listing;
    const MutexLock lock(mutex);
    contents.unfit_idx_files.push_back(idx->first + ": " + listing.error().message());
    return TarListing();
  };
  const auto take = [&](size_t index, TarListing listing) {
    if (!listing.ended) {
      const size_t count = listing.files.size();
      const MutexLock lock(mutex);
      contents.unended.push_back(
          fmt::format("{} ({} file{})", archives[index].path, count, count == 1 ? "" : "s"));
    }
    contents.files[index] = std::move(listing.files);
  };
  const auto work = [&] {
    while (!error.any()) {
      const size_t index = next++;
      if (index >= archives.size()) return;
      Result<TarListing> listing = by_idx(archives[index]);
      if (listing && listing->files.empty())
        listing = IndexTar(store, archives[index], options.deadline);
      if (!listing) return error.Set(std::move(listing).error());
      take(index, *std::move(listing));
      const std::uint64_t so_far = ++done;
      if (options.progress) options.progress(so_far, archives.size());
    }
  };
  {
    std::vector<std::jthread> threads;
    const size_t count = std::min<size_t>(std::max(options.concurrent_max, 1U), archives.size());
    for (size_t i = 0; i < count; ++i)
      threads.emplace_back(work);
  }
  RETURN_IF_ERROR(error.Take());
  std::ranges::sort(contents.unfit_idx_files);
  std::ranges::sort(contents.unended);
  return contents;
}

}  // namespace optcache::storage
