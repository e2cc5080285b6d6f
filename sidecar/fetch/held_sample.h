#pragma once

// One sample in the sidecar's memory, or on its way there.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/ids.h"
#include "base/result.h"
#include "sidecar/fetch/fetcher.h"
#include "sidecar/ports/ports.h"

namespace optcache::sidecar {

// Shared by the pass that staged it and the batches that asked for it; when the last of them lets
// go, its fetch is abandoned and its memory is free. Not thread-safe.
class HeldSample {
 public:
  enum class State : std::uint8_t { kNoMemory, kFetching, kReady, kFailed };

  HeldSample(Fetcher& fetcher, const DatasetPort& dataset, StreamId stream, wire::ReadItem item,
             ReadDue due = {})
      : fetcher_(fetcher), dataset_(dataset), stream_(stream), item_(item), due_(std::move(due)) {}
  ~HeldSample() {
    if (state_ == State::kFetching) fetcher_.Abandon(fetch_);
  }
  HeldSample(const HeldSample&) = delete;
  HeldSample& operator=(const HeldSample&) = delete;

  // Begins to fetch into `buffer`; `done` is called when it has ended, well or not.
  void Fetch(BufferRef buffer, Urgency urgency, std::function<void()> done) {
    CHECK(state_ == State::kNoMemory);
    state_ = State::kFetching;
    buffer_ = std::move(buffer);
    fetch_ = fetcher_.Start({.dataset = &dataset_,
                             .stream = stream_,
                             .item = item_,
                             .urgency = urgency,
                             .buffer = buffer_,
                             .due = due_},
                            [this, done = std::move(done)](Result<Source> source) {
                              OnFetched(std::move(source));
                              done();
                            });
  }

  // A trainer waits for it, or will at once have it.
  void AskedBy(BatchId batch) {
    askers_.push_back(batch);
    if (state_ == State::kFetching) fetcher_.MakeUrgent(fetch_);
  }
  void NoLongerAskedBy(BatchId batch) { std::erase(askers_, batch); }
  // It is fetched later than it could be, as there was no room for it.
  void NoteNoRoom() { had_no_room_ = true; }
  bool had_no_room() const { return had_no_room_; }

  State state() const { return state_; }
  bool ended() const { return state_ == State::kReady || state_ == State::kFailed; }
  const Status& error() const { return error_; }
  Source source() const { return source_; }
  // Null in state kNoMemory, and once it has failed.
  const BufferRef& buffer() const { return buffer_; }
  bool in_arena() const { return buffer_ != nullptr && buffer_->slot().has_value(); }

  SampleId id() const { return item_.id; }
  ByteCount size() const { return dataset_.SizeOf(item_.id); }
  const std::vector<BatchId>& askers() const { return askers_; }

 private:
  void OnFetched(Result<Source> source) {
    if (source) {
      state_ = State::kReady;
      source_ = *source;
      return;
    }
    state_ = State::kFailed;
    error_ = source.error();
    buffer_.reset();
  }

  Fetcher& fetcher_;
  const DatasetPort& dataset_;
  StreamId stream_;
  wire::ReadItem item_;
  ReadDue due_;
  State state_ = State::kNoMemory;
  Status error_;
  Source source_ = Source::kStore;
  bool had_no_room_ = false;
  BufferRef buffer_;
  FetchId fetch_ = 0;
  std::vector<BatchId> askers_;  // unanswered batches; one may stand here twice
};

using HeldSampleRef = std::shared_ptr<HeldSample>;

}  // namespace optcache::sidecar
