// Lists a tree of files on several threads, which share one queue of tasks.
//
// The idea: over a network each look at a file takes a round trip, so looks must overlap, also
// within one large folder. A task is a folder to read, or 1,024 entries of an open folder to look
// at. Entries go to the front of the queue and folders to its back, so that few folders are open at
// a time.
//
// Invariants: a folder knows the chain of folders above it by device and inode, so a loop of links
// ends as an error. A link that leads out of the root is an error, too (CheckInside). The walk is
// over when the queue is empty and no thread is busy; the first error or the deadline ends it
// earlier. The result is sorted, so it does not depend on the threads.

#include "storage/internal/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "dataset/manifest.h"
#include "storage/internal/source_file.h"

namespace optcache::storage::internal {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr size_t kEntriesOfATask = 1024;

// A folder on the way from the root, by which a loop of links is recognised. Shared by all folders
// below it that still wait for their turn.
struct Ancestor {
  dev_t device;
  ino_t inode;
  std::shared_ptr<const Ancestor> parent;
};

struct Folder {
  std::string path;  // relative to the root; empty for the root itself
  std::shared_ptr<const Ancestor> parent;
};

// A folder whose entries are being looked at. Shared by those who do.
struct OpenFolder {
  UniqueFd fd;
  std::string path;
  std::shared_ptr<const Ancestor> self;
};

struct Entry {
  std::string name;
  unsigned char type;  // DT_DIR and the like
};

// A folder to read or, where `open` is set, entries of one to look at.
struct Task {
  Folder folder;
  std::shared_ptr<const OpenFolder> open;
  std::vector<Entry> entries;
};

struct FolderContent {
  std::vector<ListedObject> files;
  std::vector<Folder> folders;
  std::vector<Task> rest;  // entries for other threads
};

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// Thread-safe: Run starts its threads and joins them.
class Walker {
 public:
  Walker(const WalkOptions& options, const Clock& clock) : options_(options), clock_(clock) {}

  Result<ObjectListing> Run();

 private:
  void Work();
  Result<FolderContent> Do(const Task& task) const;
  Result<FolderContent> ReadFolder(const Folder& folder) const;
  Status LookAt(const OpenFolder& folder, const std::vector<Entry>& entries,
                FolderContent& content) const;
  Status AddEntry(const OpenFolder& folder, const Entry& entry, FolderContent& content) const;
  static bool MayRead(const OpenFolder& folder, const Entry& entry, const struct stat& info);
  std::string FullPath(const std::string& path) const {
    return path.empty() ? options_.root : options_.root + "/" + path;
  }
  void Finish(Result<FolderContent> content) REQUIRES(mutex_);

  const WalkOptions& options_;
  std::string real_root_;  // set before the threads begin
  const Clock& clock_;
  Mutex mutex_;
  CondVar changed_;
  // Entries before folders, so that few folders are open.
  std::deque<Task> waiting_ GUARDED_BY(mutex_);
  unsigned busy_ GUARDED_BY(mutex_) = 0;
  Status status_ GUARDED_BY(mutex_);
  ObjectListing listing_ GUARDED_BY(mutex_);
};

Result<ObjectListing> Walker::Run() {
  ASSIGN_OR_RETURN(real_root_, RealPath(options_.root));
  {
    const MutexLock lock(mutex_);
    waiting_.emplace_back();
  }
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::max(options_.threads, 1U); ++i) {
      threads.emplace_back([this] { Work(); });
    }
  }
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(status_);
  std::ranges::sort(listing_.objects, {}, &ListedObject::path);
  std::ranges::sort(listing_.top_folders);
  return std::move(listing_);
}

void Walker::Work() {
  while (true) {
    Task task;
    {
      const MutexLock lock(mutex_);
      while (waiting_.empty() && busy_ > 0 && status_.ok()) {
        if (!changed_.WaitUntil(mutex_, options_.deadline.at())) break;
      }
      if (status_.ok() && options_.deadline.Expired(clock_.Now()) && !waiting_.empty()) {
        status_ = {Code::kDeadlineExceeded, fmt::format("{}: {} files were listed by the deadline",
                                                        options_.root, listing_.objects.size())};
      }
      if (waiting_.empty() || !status_.ok()) return;
      task = std::move(waiting_.front());
      waiting_.pop_front();
      ++busy_;
    }
    Result<FolderContent> content = Do(task);
    task = {};
    std::uint64_t objects = 0;
    {
      const MutexLock lock(mutex_);
      Finish(std::move(content));
      objects = listing_.objects.size();
    }
    changed_.NotifyAll();
    if (options_.progress) options_.progress(objects);
  }
}

void Walker::Finish(Result<FolderContent> content) {
  --busy_;
  if (!content) {
    if (status_.ok()) status_ = std::move(content).error();
    return;
  }
  std::ranges::move(content->files, std::back_inserter(listing_.objects));
  for (Folder& child : content->folders) {
    if (child.path.find('/') == std::string::npos) listing_.top_folders.push_back(child.path);
    waiting_.push_back({.folder = std::move(child), .open = nullptr, .entries = {}});
  }
  for (Task& task : content->rest)
    waiting_.push_front(std::move(task));
}

Result<FolderContent> Walker::Do(const Task& task) const {
  if (task.open == nullptr) return ReadFolder(task.folder);
  FolderContent content;
  RETURN_IF_ERROR(LookAt(*task.open, task.entries, content));
  return content;
}

Result<FolderContent> Walker::ReadFolder(const Folder& folder) const {
  const std::string path = FullPath(folder.path);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info = {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return Error(FileError(errno, path));
  for (const Ancestor* a = folder.parent.get(); a != nullptr; a = a->parent.get()) {
    if (a->device == info.st_dev && a->inode == info.st_ino) {
      return Error(Code::kInvalidArgument,
                   path + ": a link that leads back to a folder above it; remove it");
    }
  }
  const auto open = std::make_shared<OpenFolder>();
  open->fd = UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  open->path = folder.path;
  open->self = std::make_shared<const Ancestor>(
      Ancestor{.device = info.st_dev, .inode = info.st_ino, .parent = folder.parent});
  const std::unique_ptr<DIR, CloseDirectory> directory(::fdopendir(fd.get()));
  if (directory == nullptr || !open->fd.valid()) return Error(FileError(errno, path));
  (void)fd.Release();  // closed with `directory`
  FolderContent content;
  std::vector<Entry> entries;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(directory.get());  // NOLINT(concurrency-mt-unsafe): our own DIR
    if (entry == nullptr && errno != 0) return Error(FileError(errno, path));
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..")
      entries.push_back({.name = std::string(name), .type = entry->d_type});
    if (entries.size() < kEntriesOfATask) continue;
    content.rest.push_back({.folder = {}, .open = open, .entries = std::move(entries)});
    entries.clear();
  }
  RETURN_IF_ERROR(LookAt(*open, entries, content));
  return content;
}

Status Walker::LookAt(const OpenFolder& folder, const std::vector<Entry>& entries,
                      FolderContent& content) const {
  for (const Entry& entry : entries)
    RETURN_IF_ERROR(AddEntry(folder, entry, content));
  return OkStatus();
}

// Of one that everybody may read nobody is asked: that would take as long as to list it.
bool Walker::MayRead(const OpenFolder& folder, const Entry& entry, const struct stat& info) {
  constexpr mode_t kAll = S_IRUSR | S_IRGRP | S_IROTH;
  return (info.st_mode & kAll) == kAll ||
         ::faccessat(folder.fd.get(), entry.name.c_str(), R_OK, AT_EACCESS) == 0;
}

Status Walker::AddEntry(const OpenFolder& folder, const Entry& entry,
                        FolderContent& content) const {
  std::string path = folder.path.empty() ? entry.name : folder.path + "/" + entry.name;
  RETURN_IF_ERROR(dataset::CheckObjectPath(path));
  if (entry.type == DT_DIR) {
    content.folders.push_back({std::move(path), folder.self});
    return OkStatus();
  }
  struct stat info = {};
  const bool there = ::fstatat(folder.fd.get(), entry.name.c_str(), &info, 0) == 0;
  if (there && entry.type != DT_REG) {  // a link, or a file system that does not tell
    const std::string full = FullPath(path);
    const Result<std::string> real = RealPath(full);
    if (real) RETURN_IF_ERROR(CheckInside(real_root_, *real, full));
  }
  if (there && S_ISDIR(info.st_mode)) {
    content.folders.push_back({std::move(path), folder.self});
  } else if (there && S_ISREG(info.st_mode)) {
    content.files.push_back({std::move(path), InfoOf(info), MayRead(folder, entry, info)});
  } else {
    content.files.push_back({std::move(path), std::nullopt});
  }
  return OkStatus();
}

}  // namespace

ObjectInfo InfoOf(const struct stat& file) {
  return {.size = static_cast<ByteCount>(file.st_size),
          .validator = {
              .modified_ns = file.st_mtim.tv_sec * kNanosecondsPerSecond + file.st_mtim.tv_nsec,
              .etag = {}}};
}

Result<ObjectListing> Walk(const WalkOptions& options, const Clock& clock) {
  return Walker(options, clock).Run();
}

}  // namespace optcache::storage::internal
