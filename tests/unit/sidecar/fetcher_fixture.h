#pragma once

// A fetcher of small samples between a node and a store of which the test says all.

#include <map>
#include <optional>
#include <vector>

#include "sidecar/fetch/fetcher.h"
#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {

class FetcherTest : public testing::Test {
 protected:
  static constexpr ByteCount kSize = 100;

  explicit FetcherTest(FetchOptions options = {})
      : fetcher_(node_, store_, alarms_, options, [] {}) {}

  FetchId Start(SampleId id, Urgency urgency = Urgency::kStaged, StreamId stream = 5) {
    const FetchId fetch = fetcher_.Start(
        {.dataset = &dataset_,
         .stream = stream,
         .item = {.pass = 1, .position = id, .id = id},
         .urgency = urgency,
         .buffer = buffers_.emplace_back(memory_.AllocateAsked(kSize))},
        [this, id](Result<Source> source) { ended_[id].push_back(std::move(source)); });
    return fetch;
  }
  std::uint32_t LastRequest() const {
    for (auto it = node_.sent.rbegin(); it != node_.sent.rend(); ++it) {
      if (std::holds_alternative<wire::Get>(it->message)) return it->request;
    }
    return 0;
  }
  void Answer(std::uint32_t index, wire::Answer answer, wire::LeaseId lease = 0) {
    fetcher_.OnAnswer(LastRequest(),
                      {.index = index, .answer = answer, .lease = lease, .wait_ms = 20});
  }
  void AnswerBytes(std::uint32_t index, wire::Answer answer, SampleId id, Status status = {}) {
    const wire::SampleReply reply{.index = index, .answer = answer};
    const BufferRef sink = fetcher_.OnPayloadStart(LastRequest(), reply, kSize);
    ASSERT_NE(sink, nullptr);
    FillSample(id, sink->bytes());
    fetcher_.OnPayload(LastRequest(), reply, status);
  }
  void Advance(Duration by) {
    clock_.Advance(by);
    alarms_.RunDue();
    fetcher_.Flush();
  }
  std::optional<Source> Ended(SampleId id) {
    if (ended_[id].size() != 1 || !ended_[id][0]) return std::nullopt;
    return *ended_[id][0];
  }
  void LoseNode() {
    node_.up = false;
    fetcher_.OnNodeLost();
  }

  ManualClock clock_;
  Alarms alarms_{clock_};
  FakeDataset dataset_{"images", std::vector<ByteCount>(500, kSize)};
  FakeArena arena_{1};
  SampleMemory memory_{arena_, 1_MiB, {}};
  std::vector<BufferRef> buffers_;
  FakeNode node_;
  FakeStore store_;
  Fetcher fetcher_;
  std::map<SampleId, std::vector<Result<Source>>> ended_;
};

}  // namespace optcache::sidecar
