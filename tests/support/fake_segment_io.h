#pragma once

// A disk in memory, with faults by script. What it is asked to do ends when the test says so.

#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "cache/segment_io.h"

namespace optcache {

// Not thread-safe: a test's.
class FakeSegmentIo final : public cache::SegmentIo {
 public:
  struct File {
    cache::SegmentContent content;
    std::vector<cache::Extent> holes;
  };

  void Write(cache::SegmentContent content, Done done) override {
    ++writes;
    pending_.push_back([this, content = std::move(content), done] {
      if (next_write.ok()) files[content.name.number] = {.content = content, .holes = {}};
      done(std::exchange(next_write, Status()));
    });
  }
  void Read(cache::SegmentRead read, Got got) override {
    ++reads;
    pending_.push_back([this, read, got] { got(Answer(read)); });
  }
  void Punch(const cache::SegmentName& name, const cache::Extent& extent, Done done) override {
    pending_.push_back([this, number = name.number, extent, done] {
      if (punch_status.ok()) files.at(number).holes.push_back(extent);
      done(punch_status);
    });
  }
  void Remove(const cache::SegmentName& name, Done done) override {
    pending_.push_back([this, number = name.number, done] {
      files.erase(number);
      done(Status());
    });
  }

  // Ends the oldest call, or all of them, with those that they lead to.
  bool EndOne() {
    if (pending_.empty()) return false;
    const auto end = std::move(pending_.front());
    pending_.pop_front();
    end();
    return true;
  }
  void EndAll() {
    while (EndOne()) {
    }
  }
  std::size_t pending() const { return pending_.size(); }

  std::map<std::uint64_t, File> files;  // by number of the segment
  Status next_write;                    // of the write that ends next
  Status read_status;                   // of all reads
  bool flips_bits = false;              // what is read is wrong
  Status punch_status;                  // of all holes
  std::size_t writes = 0;
  std::size_t reads = 0;

 private:
  Result<cache::SampleRef> Answer(const cache::SegmentRead& read) const {
    if (!read_status.ok()) return Error(read_status);
    const auto found = files.find(read.name.number);
    if (found == files.end()) return Error(Code::kNotFound, "no such segment");
    const cache::SegmentContent& content = found->second.content;
    const auto extents =
        cache::SegmentExtents(content.records, static_cast<std::uint32_t>(content.records.size()));
    for (const cache::Extent& hole : found->second.holes) {
      if (hole.begin < read.extent.end && read.extent.begin < hole.end)
        return Error(Code::kDataLoss, "read from a hole");
    }
    for (std::size_t i = 0; i < extents.size(); ++i) {
      if (extents[i] != read.extent) continue;
      if (flips_bits || Crc32c(content.samples[i]->bytes()) != read.crc)
        return Error(Code::kDataLoss, "wrong checksum");
      return content.samples[i];
    }
    return Error(Code::kInternal, "no sample lies there");
  }

  std::deque<std::function<void()>> pending_;
};

}  // namespace optcache
