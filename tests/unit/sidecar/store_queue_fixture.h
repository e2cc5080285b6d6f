#pragma once

// A queue of store reads, and a store in which they stay under way until a test ends them.

#include <utility>
#include <vector>

#include "sidecar/fetch/store_queue.h"
#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {

class StoreQueueFixture : public testing::Test {
 protected:
  struct Wanted {
    SampleId id = 0;
    ByteCount size = 10;
    ReadDue due{};
    bool urgent = false;
    const DatasetPort* dataset = nullptr;  // null: `dataset_`
  };

  StoreQueueFixture(std::size_t samples, std::size_t places)
      : dataset_("images", std::vector<ByteCount>(samples, 10)), queue_(store_, alarms_, places) {}

  StoreQueue::Ticket Add(const Wanted& wanted) {
    return queue_.Add({.dataset = wanted.dataset != nullptr ? wanted.dataset : &dataset_,
                       .id = wanted.id,
                       .into = memory_.AllocateAsked(wanted.size),
                       .done =
                           [this, id = wanted.id](const Result<std::uint32_t>& crc) {
                             ended_.emplace_back(id, crc.has_value());
                           },
                       .due = wanted.due},
                      wanted.urgent);
  }
  void Advance(Duration by) {
    clock_.Advance(by);
    alarms_.RunDue();
  }
  std::vector<SampleId> Running() const {
    std::vector<SampleId> ids;
    for (const auto& read : store_.pending)
      ids.push_back(read.id);
    return ids;
  }

  FakeDataset dataset_;
  FakeArena arena_{1};
  SampleMemory memory_{arena_, 1'000'000, {}};
  FakeStore store_;
  ManualClock clock_;
  Alarms alarms_{clock_};
  StoreQueue queue_;
  std::vector<std::pair<SampleId, bool>> ended_;
};

}  // namespace optcache::sidecar
