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

namespace optcache::storage::internal {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

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

struct FolderContent {
  std::vector<ListedObject> files;
  std::vector<Folder> folders;
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
  Result<FolderContent> ReadFolder(const Folder& folder) const;
  Status AddEntry(int directory_fd, const dirent& entry, const Folder& folder,
                  const std::shared_ptr<const Ancestor>& self, FolderContent& content) const;
  std::string FullPath(const std::string& path) const {
    return path.empty() ? options_.root : options_.root + "/" + path;
  }
  void Finish(const Folder& folder, Result<FolderContent> content) REQUIRES(mutex_);

  const WalkOptions& options_;
  const Clock& clock_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Folder> waiting_ GUARDED_BY(mutex_);
  unsigned busy_ GUARDED_BY(mutex_) = 0;
  Status status_ GUARDED_BY(mutex_);
  ObjectListing listing_ GUARDED_BY(mutex_);
};

Result<ObjectListing> Walker::Run() {
  {
    const MutexLock lock(mutex_);
    waiting_.push_back({});
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
    Folder folder;
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
      folder = std::move(waiting_.front());
      waiting_.pop_front();
      ++busy_;
    }
    Result<FolderContent> content = ReadFolder(folder);
    std::uint64_t objects = 0;
    {
      const MutexLock lock(mutex_);
      Finish(folder, std::move(content));
      objects = listing_.objects.size();
    }
    changed_.NotifyAll();
    if (options_.progress) options_.progress(objects);
  }
}

void Walker::Finish(const Folder& folder, Result<FolderContent> content) {
  --busy_;
  if (!content) {
    if (status_.ok()) status_ = std::move(content).error();
    return;
  }
  std::ranges::move(content->files, std::back_inserter(listing_.objects));
  for (Folder& child : content->folders) {
    if (folder.path.empty()) listing_.top_folders.push_back(child.path);
    waiting_.push_back(std::move(child));
  }
}

Result<FolderContent> Walker::ReadFolder(const Folder& folder) const {
  const std::string path = FullPath(folder.path);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info = {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return Error(ErrnoStatus(errno, path));
  for (const Ancestor* a = folder.parent.get(); a != nullptr; a = a->parent.get()) {
    if (a->device == info.st_dev && a->inode == info.st_ino) {
      return Error(Code::kInvalidArgument,
                   path + ": a link that leads back to a folder above it; remove it");
    }
  }
  const auto self = std::make_shared<const Ancestor>(
      Ancestor{.device = info.st_dev, .inode = info.st_ino, .parent = folder.parent});
  const std::unique_ptr<DIR, CloseDirectory> directory(::fdopendir(fd.get()));
  if (directory == nullptr) return Error(ErrnoStatus(errno, path));
  const int directory_fd = fd.Release();  // closed with `directory`
  FolderContent content;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(directory.get());  // NOLINT(concurrency-mt-unsafe): our own DIR
    if (entry == nullptr && errno != 0) return Error(ErrnoStatus(errno, path));
    if (entry == nullptr) return content;
    RETURN_IF_ERROR(AddEntry(directory_fd, *entry, folder, self, content));
  }
}

Status Walker::AddEntry(int directory_fd, const dirent& entry, const Folder& folder,
                        const std::shared_ptr<const Ancestor>& self, FolderContent& content) const {
  const char* const name = entry.d_name;
  if (std::string_view(name) == "." || std::string_view(name) == "..") return OkStatus();
  std::string path = folder.path.empty() ? name : folder.path + "/" + name;
  RETURN_IF_ERROR(dataset::CheckObjectPath(path));
  if (entry.d_type == DT_DIR) {
    content.folders.push_back({std::move(path), self});
    return OkStatus();
  }
  struct stat info = {};
  const bool there = ::fstatat(directory_fd, name, &info, 0) == 0;
  if (there && S_ISDIR(info.st_mode)) {
    content.folders.push_back({std::move(path), self});
  } else if (there && S_ISREG(info.st_mode)) {
    content.files.push_back({std::move(path), InfoOf(info)});
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
