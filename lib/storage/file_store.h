#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "storage/object_store.h"

namespace optcache::storage {

struct FileStoreOptions {
  std::string root;
  unsigned threads = 16;  // reads at a time
  size_t waiting_reads_max = 1024;
  unsigned walk_threads = 8;  // folders listed at a time
};

// The files below a folder, local or mounted. Links are followed, as torchvision does, but none
// that lead out of the folder. Reads check size and modification time before and after, so that a
// file written meanwhile is noticed. A read that waits for a thread ends at its deadline; one that
// has begun looks at it between steps of 1 MiB, so a file system that hangs holds up that read, and
// Shutdown, until it answers. What a mount says while its server is away (EIO, ESTALE and the
// like) is kUnavailable.
//
// A read whose bytes the caller keeps (ReadRequest::kept) takes the pages that it has brought into
// the page cache out again. Pages that were there before it are in use by others, and stay; so do
// pages of which the read has a part alone, since their other bytes are not kept with it. Where the
// file system does not tell what was there (NFS), all pages of the read go.
class FileStore final : public ObjectStore {
 public:
  // kNotFound or kInvalidArgument if the root is not a folder. `clock` must outlive the store.
  static Result<std::unique_ptr<FileStore>> Open(FileStoreOptions options,
                                                 const Clock& clock = SystemClock());
  ~FileStore() override;

  const std::string& name() const override { return name_; }
  Status Read(ReadRequest request, ReadCallback done) override;
  Result<ObjectInfo> Stat(const std::string& object, Deadline deadline) override;
  Result<ObjectListing> List(Deadline deadline, const ListProgress& progress) override;
  void Shutdown() override;
  void VisitCounters(const CounterVisitor& visit) const override;

 private:
  class FileRead;
  struct WaitingRead {
    ReadRequest request;
    ReadCallback done;
  };

  FileStore(FileStoreOptions options, std::string real_root, const Clock& clock);
  std::string PathOf(const std::string& object) const { return options_.root + "/" + object; }
  void ServeReads();
  void ExpireWaitingReads();
  std::vector<WaitingRead> TakeExpired(MonotonicTime now) REQUIRES(mutex_);
  Status ReadNow(const ReadRequest& request) const;
  Status ReadParts(FileRead& read, const ReadRequest& request) const;
  Status ReadBytes(FileRead& read, ByteCount offset, MutableByteSpan into,
                   const ReadRequest& request) const;

  const FileStoreOptions options_;
  const std::string real_root_;  // without links
  const std::string name_;
  const Clock& clock_;
  std::atomic<bool> stopping_ = false;  // written under mutex_, read between the steps of a read

  mutable Mutex mutex_;
  CondVar read_waits_;
  CondVar expiry_is_earlier_;
  std::deque<WaitingRead> waiting_ GUARDED_BY(mutex_);
  MonotonicTime next_expiry_ GUARDED_BY(mutex_);  // when ExpireWaitingReads looks again
  std::vector<std::jthread> threads_ GUARDED_BY(mutex_);
};

}  // namespace optcache::storage
