#include "storage/internal/autoindex_walk.h"

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/mutex.h"
#include "base/percent_encoding.h"
#include "dataset/manifest.h"
#include "storage/autoindex.h"

namespace optcache::storage::internal {
namespace {

using Fetch = std::function<Result<std::string>(const std::string& folder)>;

// Thread-safe: Run starts its threads and joins them.
class PageWalker {
 public:
  PageWalker(const AutoindexWalkOptions& options, const Fetch& fetch, const Clock& clock)
      : options_(options), fetch_(fetch), retries_(options.pages, clock) {}

  Result<ObjectListing> Run() {
    {
      const MutexLock lock(mutex_);
      waiting_.emplace_back();
    }
    {
      std::vector<std::jthread> threads;
      for (unsigned i = 0; i < std::max(options_.concurrent_max, 1U); ++i)
        threads.emplace_back([this] { Work(); });
    }
    const MutexLock lock(mutex_);
    RETURN_IF_ERROR(status_);
    std::ranges::sort(listing_.objects, {}, &ListedObject::path);
    std::ranges::sort(listing_.top_folders);
    return std::move(listing_);
  }

 private:
  void Work() {
    while (true) {
      std::string folder;
      {
        const MutexLock lock(mutex_);
        // A busy thread comes to an end by its own deadline.
        while (waiting_.empty() && busy_ > 0 && status_.ok()) {
          if (!changed_.WaitUntil(mutex_, options_.pages.deadline.at())) return;
        }
        if (waiting_.empty() || !status_.ok()) return;
        folder = std::move(waiting_.front());
        waiting_.pop_front();
        ++busy_;
      }
      const Result<AutoindexPage> page = PageOf(folder);
      std::uint64_t objects = 0;
      {
        const MutexLock lock(mutex_);
        --busy_;
        Status status = page ? Add(folder, *page) : page.error();
        if (!status.ok()) retries_.Stop();
        if (status_.ok()) status_ = std::move(status);
        objects = listing_.objects.size();
      }
      changed_.NotifyAll();
      if (options_.progress) options_.progress(objects);
    }
  }

  Result<AutoindexPage> PageOf(const std::string& folder) {
    ASSIGN_OR_RETURN(const std::string html,
                     retries_.AskFor(folder, [&] { return fetch_(folder); }));
    Result<AutoindexPage> page =
        ParseAutoindex(html, options_.base_path + PercentEncodePath(folder));
    if (!page) return Error(std::move(page).error().WithContext("/" + folder));
    return page;
  }

  Status Add(const std::string& folder, const AutoindexPage& page) REQUIRES(mutex_) {
    for (const std::string& name : page.files) {
      std::string path = folder + name;
      RETURN_IF_ERROR(dataset::CheckObjectPath(path));
      listing_.objects.push_back({.path = std::move(path), .info = std::nullopt});
    }
    for (const std::string& name : page.folders) {
      std::string path = folder + name;
      RETURN_IF_ERROR(dataset::CheckObjectPath(path));
      if (++folders_ > kAutoindexFoldersMax) {
        return {Code::kInvalidArgument,
                fmt::format("more than {} folders: give a listing file", kAutoindexFoldersMax)};
      }
      if (folder.empty()) listing_.top_folders.push_back(name);
      waiting_.push_back(path + "/");
    }
    return OkStatus();
  }

  const AutoindexWalkOptions& options_;
  const Fetch& fetch_;
  PageRetries retries_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::string> waiting_ GUARDED_BY(mutex_);
  unsigned busy_ GUARDED_BY(mutex_) = 0;
  size_t folders_ GUARDED_BY(mutex_) = 0;
  Status status_ GUARDED_BY(mutex_);
  ObjectListing listing_ GUARDED_BY(mutex_);
};

}  // namespace

Result<ObjectListing> WalkAutoindex(const AutoindexWalkOptions& options, const Fetch& fetch,
                                    const Clock& clock) {
  return PageWalker(options, fetch, clock).Run();
}

}  // namespace optcache::storage::internal
