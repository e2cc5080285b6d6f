#pragma once

// Segments as files of one folder. Bytes go past the page cache where the file system lets them
// (O_DIRECT), else they leave it at once (fadvise), so that they are not in memory twice.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cache/disk_threads.h"
#include "cache/segment_format.h"
#include "cache/segment_io.h"

namespace optcache::cache {

// --- What a thread does; each call waits for the disk -------------------------------------------

// The path of a segment under the node's folder.
std::string SegmentPath(const std::string& folder, const SegmentName& name);

// Takes the room, writes in steps of 1 MiB, and waits until the disk has it. An error leaves no
// file behind. kResourceExhausted: the disk is full; kInternal and others: the disk failed.
Status WriteSegment(const std::string& path, const SegmentContent& content);
// kDataLoss: the file is shorter, or the bytes have another checksum; kNotFound: it is gone.
Result<SampleRef> ReadSegment(const std::string& path, const SegmentRead& read);
// kInvalidArgument: this file system cannot give back a part of a file.
Status PunchSegment(const std::string& path, const Extent& extent);
Status RemoveSegment(const std::string& path);

// Makes the folder if need be, and finds all that it has. In the folders of datasets, what is no
// segment is removed; what else lies beside them is left alone. A segment that cannot be opened or
// read, or is none and cannot be removed, stays and has that error as its status. An error: the
// folder cannot be used.
Result<std::vector<FoundSegment>> FindSegments(const std::string& folder);

// --- On threads ---------------------------------------------------------------------------------

// Of one folder. Used on its owner's thread, and calls back there.
class SegmentFiles final : public SegmentIo {
 public:
  // `post` makes a call on the owner's thread; it is called on others, and what it is given must
  // not be called once the owner is gone.
  using Post = std::function<void(std::function<void()>)>;
  SegmentFiles(std::string folder, DiskThreads& threads, const Clock& clock, Post post);

  void Write(SegmentContent content, Done done) override;
  void Read(SegmentRead read, Got got) override;
  void Punch(const SegmentName& name, const Extent& extent, Done done) override;
  void Remove(const SegmentName& name, Done done) override;

 private:
  std::function<void()> Change(std::function<Status()> change,
                               const std::shared_ptr<Done>& end) const;

  std::string folder_;
  DiskThreads& threads_;
  const Clock& clock_;
  Post post_;
};

}  // namespace optcache::cache
