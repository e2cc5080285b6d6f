// Reads files on a few threads, and takes out of the page cache what a kept read has brought there.
//
// The idea: a file may be on a mount that hangs, and then so do the threads. So reads wait in a
// bounded queue, and one more thread, which touches no file, ends those whose deadline comes before
// their turn. A read checks the file's size and time before and after, so a file that is written
// meanwhile is noticed.
//
// Of a read whose bytes the caller keeps, FileRead takes what the page cache has (RWF_NOWAIT),
// notes where the first missing byte was, and drops the pages from there on. RWF_NOWAIT also starts
// to read what is missing, and a fast disk may have brought it before the kernel looks; then the
// blocks that the thread has read (getrusage) tell it. `stopping_` is looked at between steps of
// 1 MiB, so Shutdown waits for one step of each thread.

#include "storage/file_store.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/unique_fd.h"
#include "dataset/manifest.h"
#include "storage/internal/source_file.h"
#include "storage/internal/walk.h"

namespace optcache::storage {
namespace {

constexpr size_t kReadStep = 1_MiB;
// Threads look around this often at least.
constexpr Duration kThreadIdleWait = std::chrono::seconds(10);

std::string WithoutTrailingSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  return path;
}

// Blocks for which this thread has asked a disk; always 0 where the kernel does not count them.
int64_t BlocksReadByThisThread() {
  rusage usage = {};
  return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_inblock : 0;
}

Status NotRegular(const std::string& what) {
  return {Code::kNotFound, what + ": not a regular file"};
}

}  // namespace

Result<std::unique_ptr<FileStore>> FileStore::Open(FileStoreOptions options, const Clock& clock) {
  options.root = WithoutTrailingSlashes(std::move(options.root));
  struct stat root = {};
  const bool found = ::stat(options.root.c_str(), &root) == 0;
  if (!found && errno != ENOENT) return Error(internal::FileError(errno, options.root));
  if (!found || !S_ISDIR(root.st_mode)) {
    return Error(found ? Code::kInvalidArgument : Code::kNotFound,
                 options.root + (found ? " is not a folder" : ": there is no such folder") +
                     ": check the address of the source");
  }
  ASSIGN_OR_RETURN(std::string real_root, internal::RealPath(options.root));
  return std::unique_ptr<FileStore>(new FileStore(std::move(options), std::move(real_root), clock));
}

FileStore::FileStore(FileStoreOptions options, std::string real_root, const Clock& clock)
    : options_(std::move(options)),
      real_root_(std::move(real_root)),
      name_("file://" + options_.root),
      clock_(clock) {
  const MutexLock lock(mutex_);
  for (unsigned i = 0; i < std::max(options_.threads, 1U); ++i) {
    threads_.emplace_back([this] { ServeReads(); });
  }
  threads_.emplace_back([this] { ExpireWaitingReads(); });
}

FileStore::~FileStore() {
  Shutdown();
}

Status FileStore::Read(ReadRequest request, ReadCallback done) {
  RETURN_IF_ERROR(CheckReadRequest(request));
  {
    const MutexLock lock(mutex_);
    if (stopping_) return {Code::kCancelled, name_ + ": shut down"};
    if (waiting_.size() >= options_.waiting_reads_max) {
      return {Code::kResourceExhausted,
              fmt::format("{}: {} reads wait already", name_, waiting_.size())};
    }
    if (request.deadline.at() < next_expiry_) {
      next_expiry_ = request.deadline.at();
      expiry_is_earlier_.NotifyOne();
    }
    waiting_.push_back({std::move(request), std::move(done)});
  }
  read_waits_.NotifyOne();
  return OkStatus();
}

void FileStore::ServeReads() {
  while (true) {
    std::optional<WaitingRead> read;
    {
      const MutexLock lock(mutex_);
      while (waiting_.empty() && !stopping_) {
        read_waits_.WaitUntil(mutex_, clock_.Now() + kThreadIdleWait);
      }
      if (stopping_) return;
      read = std::move(waiting_.front());
      waiting_.pop_front();
    }
    Status status = ReadNow(read->request);
    read->done({.status = std::move(status)});
  }
}

// Threads may all hang in a file system that does not answer; what still waits ends in time here.
void FileStore::ExpireWaitingReads() {
  while (!stopping_) {
    std::vector<WaitingRead> expired;
    {
      const MutexLock lock(mutex_);
      expired = TakeExpired(clock_.Now());
      if (expired.empty() && !stopping_) expiry_is_earlier_.WaitUntil(mutex_, next_expiry_);
    }
    for (WaitingRead& read : expired) {
      read.done({.status = {Code::kDeadlineExceeded,
                            Describe(read.request) + ": the deadline came before its turn"}});
    }
  }
}

std::vector<FileStore::WaitingRead> FileStore::TakeExpired(MonotonicTime now) {
  const auto first = std::stable_partition(waiting_.begin(), waiting_.end(), [&](const auto& read) {
    return !read.request.deadline.Expired(now);
  });
  std::vector<WaitingRead> expired(std::make_move_iterator(first),
                                   std::make_move_iterator(waiting_.end()));
  waiting_.erase(first, waiting_.end());
  next_expiry_ = now + kThreadIdleWait;
  for (const WaitingRead& read : waiting_) {
    next_expiry_ = std::min(next_expiry_, read.request.deadline.at());
  }
  return expired;
}

// One read of an open file, and what it brings into the page cache. Not thread-safe.
class FileStore::FileRead {
 public:
  FileRead(int fd, const ReadRequest& request) : fd_(fd), request_(request) {
    // Else the kernel may read ahead, beyond what Wipe takes out.
    if (request.kept && request.destination.size() < request.object_size)
      ::posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
  }

  // As pread.
  ssize_t Read(MutableByteSpan into, ByteCount offset) {
    const auto at = static_cast<off_t>(offset);
    if (request_.kept && !brought_from_) {
      const iovec piece = {.iov_base = into.data(), .iov_len = into.size()};
      const int64_t blocks = BlocksReadByThisThread();
      const ssize_t there = ::preadv2(fd_, &piece, 1, at, RWF_NOWAIT);
      if (std::cmp_equal(there, into.size()) && BlocksReadByThisThread() == blocks) return there;
      // After a part, the rest is what was missing.
      const bool part = there > 0 && std::cmp_less(there, into.size());
      brought_from_ = part ? offset + static_cast<ByteCount>(there) : offset;
      if (there > 0) return there;
    }
    return ::pread(fd_, into.data(), into.size(), at);
  }

  // Whole pages alone, as the kernel does it; the page with the end of the file counts as whole.
  void Wipe() const {
    if (!brought_from_) return;
    const ByteCount end = request_.offset + request_.destination.size();
    ::posix_fadvise(fd_, static_cast<off_t>(*brought_from_),
                    static_cast<off_t>(end - *brought_from_), POSIX_FADV_DONTNEED);
  }

 private:
  int fd_;
  const ReadRequest& request_;
  std::optional<ByteCount> brought_from_;  // what follows was not there, or perhaps not
};

Status FileStore::ReadNow(const ReadRequest& request) const {
  const std::string path = PathOf(request.object);
  // O_NONBLOCK: opening a pipe without a writer would hang.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return internal::FileError(errno, Describe(request));
  RETURN_IF_ERROR(internal::CheckOpenInside(real_root_, fd.get(), Describe(request)));
  const auto check = [&]() -> Status {
    struct stat file = {};
    if (::fstat(fd.get(), &file) != 0) return internal::FileError(errno, Describe(request));
    if (!S_ISREG(file.st_mode)) return NotRegular(Describe(request));
    return CheckUnchanged(Describe(request), request.listed(), internal::InfoOf(file));
  };
  RETURN_IF_ERROR(check());
  FileRead read(fd.get(), request);
  RETURN_IF_ERROR(ReadParts(read, request));
  read.Wipe();
  return check();
}

// What is thrown away need not be read here.
Status FileStore::ReadParts(FileRead& read, const ReadRequest& request) const {
  ByteCount offset = request.offset;
  for (const Destination::Part& part : request.destination.parts()) {
    if (part.data != nullptr) {
      RETURN_IF_ERROR(ReadBytes(read, offset, MutableByteSpan(part.data, part.length), request));
    }
    offset += part.length;
  }
  return OkStatus();
}

// `request` is the whole that this is a part of.
Status FileStore::ReadBytes(FileRead& read, ByteCount offset, MutableByteSpan rest,
                            const ReadRequest& request) const {
  while (!rest.empty()) {
    if (stopping_) return {Code::kCancelled, Describe(request) + ": the store was shut down"};
    if (request.deadline.Expired(clock_.Now())) {
      return {Code::kDeadlineExceeded, fmt::format("{}: {} bytes were left at the deadline",
                                                   Describe(request), rest.size())};
    }
    const size_t step = std::min<size_t>(rest.size(), kReadStep);
    const ssize_t n = read.Read(rest.first(step), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return internal::FileError(errno, Describe(request));
    if (n == 0) {
      return {Code::kDataLoss,
              fmt::format("{}: the file ends {} bytes early", Describe(request), rest.size())};
    }
    request.destination.CountArrived(static_cast<ByteCount>(n));
    rest = rest.subspan(static_cast<size_t>(n));
    offset += static_cast<ByteCount>(n);
  }
  return OkStatus();
}

Result<ObjectInfo> FileStore::Stat(const std::string& object, Deadline /*deadline*/) {
  RETURN_IF_ERROR(dataset::CheckObjectPath(object));
  const std::string path = PathOf(object);
  struct stat file = {};
  if (::stat(path.c_str(), &file) != 0) return Error(internal::FileError(errno, path));
  if (!S_ISREG(file.st_mode)) return Error(NotRegular(path));
  return internal::InfoOf(file);
}

Result<ObjectListing> FileStore::List(Deadline deadline, const ListProgress& progress) {
  return internal::Walk({.root = options_.root,
                         .threads = options_.walk_threads,
                         .deadline = deadline,
                         .progress = progress},
                        clock_);
}

void FileStore::Shutdown() {
  std::vector<std::jthread> threads;
  std::deque<WaitingRead> cancelled;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    cancelled.swap(waiting_);
  }
  read_waits_.NotifyAll();
  expiry_is_earlier_.NotifyAll();
  for (WaitingRead& read : cancelled) {
    read.done({.status = {Code::kCancelled, Describe(read.request) + ": the store was shut down"}});
  }
  threads.clear();  // joins
}

void FileStore::VisitCounters(const CounterVisitor& visit) const {
  const MutexLock lock(mutex_);
  visit(MetricKind::kGauge, "optcache_store_client_requests",
        {{"store", name_}, {"state", "waiting"}}, static_cast<double>(waiting_.size()));
}

}  // namespace optcache::storage
