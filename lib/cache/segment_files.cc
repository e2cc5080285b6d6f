// Keeps segments as files: system calls run on the disk's threads, results come on the owner's.
//
// The idea: the memory tier is the cache of samples, so the page cache must not hold them too.
// O_DIRECT needs aligned memory and whole blocks, so each thread copies through one aligned buffer
// of 1 MiB. A file ends with a whole block, so its last sample can be read this way too. A file
// system without O_DIRECT gets plain calls, and is told to forget the pages.
//
// WriteSegment asks for the room of the whole file first: a full disk says so before anything is
// written. It waits until the disk has the bytes, and removes the file after an error. After a
// crash a file may be torn: FindSegments takes the records that are whole, and removes a file in a
// dataset's folder that is no segment. Only its kind, its bytes or its name can say that: a disk
// that fails, or a process without a free descriptor, says nothing about a file.

#include "cache/segment_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "base/unique_fd.h"

namespace optcache::cache {
namespace {

constexpr ByteCount kStep = 1_MiB;  // a multiple of the block

struct FreeDeleter {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using AlignedBytes = std::unique_ptr<std::byte, FreeDeleter>;

// Of kStep bytes, aligned for O_DIRECT; each thread has one, from its first use to its end.
std::byte* StepBuffer() {
  thread_local const AlignedBytes buffer(
      static_cast<std::byte*>(std::aligned_alloc(kSegmentBlock, kStep)));
  return buffer.get();
}

struct OpenFile {
  UniqueFd fd;
  bool direct = false;
};

Result<OpenFile> OpenSegment(const std::string& path, int flags) {
  OpenFile file{.fd = UniqueFd(::open(path.c_str(), flags | O_CLOEXEC | O_DIRECT, 0600)),
                .direct = true};
  if (!file.fd.valid() && errno == EINVAL) {  // not on this file system
    file = {.fd = UniqueFd(::open(path.c_str(), flags | O_CLOEXEC, 0600)), .direct = false};
  }
  if (!file.fd.valid()) return Error(ErrnoStatus(errno, "open " + path));
  return file;
}

off_t Offset(ByteCount bytes) {
  return static_cast<off_t>(bytes);
}

Status WriteAt(int fd, ByteSpan bytes, ByteCount at, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), Offset(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno == EDQUOT ? ENOSPC : errno, "write " + path);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    at += static_cast<ByteCount>(n);
  }
  return OkStatus();
}

// Collects what is to be written into steps of whole blocks.
class StepWriter {
 public:
  StepWriter(int fd, const std::string& path) : fd_(fd), path_(path), buffer_(StepBuffer()) {}

  Status Add(ByteSpan bytes) {
    while (!bytes.empty()) {
      const std::size_t part = std::min<std::size_t>(bytes.size(), kStep - filled_);
      std::memcpy(buffer_ + filled_, bytes.data(), part);
      filled_ += part;
      bytes = bytes.subspan(part);
      if (filled_ == kStep) RETURN_IF_ERROR(Flush());
    }
    return OkStatus();
  }
  // The rest, filled up with zeros to a whole block.
  Status Finish() {
    const ByteCount padded = RoundUpToBlock(filled_);
    std::memset(buffer_ + filled_, 0, padded - filled_);
    filled_ = padded;
    return Flush();
  }

 private:
  Status Flush() {
    RETURN_IF_ERROR(WriteAt(fd_, {buffer_, filled_}, written_, path_));
    written_ += std::exchange(filled_, 0);
    return OkStatus();
  }

  int fd_;
  const std::string& path_;
  std::byte* buffer_;
  std::size_t filled_ = 0;
  ByteCount written_ = 0;
};

Status WriteContent(const OpenFile& file, const std::string& path, const SegmentContent& content) {
  const int fd = file.fd.get();
  const ByteCount size = SegmentFileBytes(content.records);
  // A full disk says so here, before anything is written.
  if (::fallocate(fd, 0, 0, Offset(size)) != 0 && errno != EOPNOTSUPP) {
    return ErrnoStatus(errno == EDQUOT ? ENOSPC : errno, "make room for " + path);
  }
  StepWriter writer(fd, path);
  RETURN_IF_ERROR(writer.Add(AsBytes(EncodeSegmentTable(content.name, content.records))));
  for (const SampleRef& sample : content.samples)
    RETURN_IF_ERROR(writer.Add(sample->bytes()));
  RETURN_IF_ERROR(writer.Finish());
  if (::fdatasync(fd) != 0) {
    return ErrnoStatus(errno == EDQUOT ? ENOSPC : errno, "write to the disk " + path);
  }
  if (!file.direct) ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  return OkStatus();
}

// Fills `to` from where `at` is, kDataLoss if the file ends before.
Status ReadAt(int fd, MutableByteSpan to, ByteCount at, const std::string& path) {
  while (!to.empty()) {
    const ssize_t n = ::pread(fd, to.data(), to.size(), Offset(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "read " + path);
    if (n == 0) return {Code::kDataLoss, fmt::format("{} ends at byte {}", path, at)};
    to = to.subspan(static_cast<std::size_t>(n));
    at += static_cast<ByteCount>(n);
  }
  return OkStatus();
}

// By whole blocks through the thread's buffer: files end with one.
Status ReadDirectly(int fd, MutableByteSpan to, ByteCount at, const std::string& path) {
  std::byte* const buffer = StepBuffer();
  while (!to.empty()) {
    const ByteCount begin = RoundDownToBlock(at);
    const ByteCount length = std::min(kStep, RoundUpToBlock(at + to.size()) - begin);
    RETURN_IF_ERROR(ReadAt(fd, {buffer, length}, begin, path));
    const std::size_t part = std::min<std::size_t>(to.size(), begin + length - at);
    std::memcpy(to.data(), buffer + (at - begin), part);
    to = to.subspan(part);
    at += part;
  }
  return OkStatus();
}

// Ascending. A file system that does not know of holes has none.
std::vector<Extent> HolesOf(int fd, ByteCount size) {
  std::vector<Extent> holes;
  ByteCount at = 0;
  while (at < size) {
    const off_t begin = ::lseek(fd, Offset(at), SEEK_HOLE);
    if (begin < 0 || static_cast<ByteCount>(begin) >= size) break;
    const off_t data = ::lseek(fd, begin, SEEK_DATA);
    const ByteCount end = data < 0 ? size : static_cast<ByteCount>(data);
    holes.push_back({.begin = static_cast<ByteCount>(begin), .end = end});
    at = end;
  }
  return holes;
}

// kDataLoss: by its bytes, it is no segment of this version. Others: the system cannot read it.
Result<FoundSegment> Look(const std::string& path, const SegmentName& name) {
  struct stat file{};
  // Before it is opened: a socket cannot be.
  if (::stat(path.c_str(), &file) == 0 && !S_ISREG(file.st_mode)) {
    return Error(Code::kDataLoss, path + " is no regular file");
  }
  // The opening of what is a pipe all the same does not wait.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return Error(ErrnoStatus(errno, "open " + path));
  if (::fstat(fd.get(), &file) != 0) return Error(ErrnoStatus(errno, "read " + path));
  const auto size = static_cast<ByteCount>(file.st_size);
  std::vector<std::byte> table(std::min(kSegmentBlock, size));
  RETURN_IF_ERROR(ReadAt(fd.get(), table, 0, path));
  const Result<std::uint32_t> records = ParseSegmentHeader(name, table);
  if (!records) return Error(Code::kDataLoss, records.error().message());
  const std::size_t known = table.size();
  table.resize(std::min(SegmentDataBegin(*records), size));
  RETURN_IF_ERROR(
      ReadAt(fd.get(), std::span(table).subspan(std::min(known, table.size())), known, path));
  FoundSegment found{.name = name,
                     .segment = {},
                     .file_bytes = static_cast<ByteCount>(file.st_blocks) * 512,
                     .holes = HolesOf(fd.get(), size)};
  ASSIGN_OR_RETURN(found.segment, ParseSegment(name, table, size, found.holes));
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  return found;
}

FoundSegment Unread(const std::string& path, const SegmentName& name, Status error) {
  struct stat file{};
  const bool known = ::lstat(path.c_str(), &file) == 0;
  return {.name = name,
          .segment = {},
          .file_bytes = known ? static_cast<ByteCount>(file.st_blocks) * 512 : 0,
          .holes = {},
          .status = std::move(error)};
}

Status Discard(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return error ? ErrnoStatus(error.value(), "remove " + path) : OkStatus();
}

Status FindIn(const std::filesystem::directory_entry& folder, std::vector<FoundSegment>& found) {
  const auto dataset = ParseSegmentFolderName(folder.path().filename().string());
  if (!dataset) return OkStatus();  // not ours
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder.path(), error)) {
    const std::string path = file.path().string();
    const auto number = ParseSegmentFileName(file.path().filename().string());
    const SegmentName name{.dataset = *dataset, .number = number.value_or(0)};
    Result<FoundSegment> segment = number ? Look(path, name) : Error(Code::kDataLoss, "no segment");
    if (segment) {
      found.push_back(*std::move(segment));
      continue;
    }
    Status why = std::move(segment).error();
    if (why.code() == Code::kDataLoss) why = Discard(path);
    if (!why.ok() && number) found.push_back(Unread(path, name, std::move(why)));
  }
  if (error) return ErrnoStatus(error.value(), "list " + folder.path().string());
  ::rmdir(folder.path().c_str());  // if nothing is left in it
  return OkStatus();
}

}  // namespace

std::string SegmentPath(const std::string& folder, const SegmentName& name) {
  return folder + "/" + SegmentFolderName(name.dataset) + "/" + SegmentFileName(name.number);
}

Status WriteSegment(const std::string& path, const SegmentContent& content) {
  const std::string folder = path.substr(0, path.rfind('/'));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return ErrnoStatus(errno, "make " + folder);
  }
  ASSIGN_OR_RETURN(const OpenFile file, OpenSegment(path, O_WRONLY | O_CREAT | O_EXCL));
  Status status = WriteContent(file, path, content);
  if (!status.ok()) ::unlink(path.c_str());
  return status;
}

Result<SampleRef> ReadSegment(const std::string& path, const SegmentRead& read) {
  ASSIGN_OR_RETURN(const OpenFile file, OpenSegment(path, O_RDONLY));
  const int fd = file.fd.get();
  const auto sample = std::make_shared<SampleBytes>(read.extent.size());
  if (file.direct) {
    RETURN_IF_ERROR(ReadDirectly(fd, sample->writable(), read.extent.begin, path));
  } else {
    RETURN_IF_ERROR(ReadAt(fd, sample->writable(), read.extent.begin, path));
    ::posix_fadvise(fd, Offset(read.extent.begin), Offset(read.extent.size()), POSIX_FADV_DONTNEED);
  }
  if (Crc32c(sample->bytes()) != read.crc) {
    return Error(Code::kDataLoss, fmt::format("{}: the sample at byte {} has another checksum",
                                              path, read.extent.begin));
  }
  return sample;
}

Status PunchSegment(const std::string& path, const Extent& extent) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, "open " + path);
  if (::fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, Offset(extent.begin),
                  Offset(extent.size())) == 0) {
    return OkStatus();
  }
  const int error = errno;
  return ErrnoStatus(error == EOPNOTSUPP || error == ENOSYS ? EINVAL : error, "give back " + path);
}

Status RemoveSegment(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return ErrnoStatus(errno, "remove " + path);
  return OkStatus();
}

Result<std::vector<FoundSegment>> FindSegments(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error(ErrnoStatus(error.value(), "make " + folder));
  std::vector<FoundSegment> found;
  std::filesystem::directory_iterator folders(folder, error);
  if (error) return Error(ErrnoStatus(error.value(), "list " + folder));
  for (const auto& entry : folders)
    RETURN_IF_ERROR(FindIn(entry, found));
  std::ranges::sort(found, {}, [](const FoundSegment& segment) {
    return std::pair(segment.name.dataset, segment.name.number);
  });
  return found;
}

// --- On threads ---------------------------------------------------------------------------------

SegmentFiles::SegmentFiles(std::string folder, DiskThreads& threads, const Clock& clock, Post post)
    : folder_(std::move(folder)), threads_(threads), clock_(clock), post_(std::move(post)) {}

// What is called in the end belongs to the owner's thread, on which alone it may be destroyed: it
// is moved there, so that what a thread is left with is empty.
std::function<void()> SegmentFiles::Change(std::function<Status()> change,
                                           const std::shared_ptr<Done>& end) const {
  return [change = std::move(change), end, post = post_] {
    Status status = change();
    post([status = std::move(status), done = std::move(*end)] { done(status); });
  };
}

void SegmentFiles::Write(SegmentContent content, Done done) {
  const std::string path = SegmentPath(folder_, content.name);
  const auto shared = std::make_shared<const SegmentContent>(std::move(content));
  const auto end = std::make_shared<Done>(std::move(done));
  const Status begun =
      threads_.Write(Change([path, shared] { return WriteSegment(path, *shared); }, end));
  if (!begun.ok()) post_([begun, done = std::move(*end)] { done(begun); });
}

void SegmentFiles::Punch(const SegmentName& name, const Extent& extent, Done done) {
  threads_.Clean(
      Change([path = SegmentPath(folder_, name), extent] { return PunchSegment(path, extent); },
             std::make_shared<Done>(std::move(done))));
}

void SegmentFiles::Remove(const SegmentName& name, Done done) {
  threads_.Clean(Change([path = SegmentPath(folder_, name)] { return RemoveSegment(path); },
                        std::make_shared<Done>(std::move(done))));
}

void SegmentFiles::Read(SegmentRead read, Got got) {
  const std::string path = SegmentPath(folder_, read.name);
  const auto end = std::make_shared<Got>(std::move(got));
  const Status begun = threads_.Read([path, read, end, post = post_, &clock = clock_] {
    Result<SampleRef> result = clock.Now() >= read.deadline
                                   ? Error(Code::kDeadlineExceeded, path + " waited too long")
                                   : ReadSegment(path, read);
    post([result = std::move(result), done = std::move(*end)] { done(result); });
  });
  if (!begun.ok()) post_([begun, done = std::move(*end)] { done(Error(begun)); });
}

}  // namespace optcache::cache
