#include "net/internal/send_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "wire/codec.h"

namespace optcache::net {

Status SendQueue::Push(std::uint32_t request_id, const wire::Message& message, ByteSpan payload,
                       std::shared_ptr<const void> pin) {
  const bool joins = entries_.size() > peeked_ && entries_.back().payload.empty() &&
                     entries_.back().head.size() < kMaxJoinedHeads;
  if (!joins) entries_.emplace_back();
  Entry& entry = entries_.back();
  const std::size_t before = entry.head.size();
  Status appended =
      wire::AppendFrame(request_id, message, payload.size(), entry.head, seal_ ? &*seal_ : nullptr);
  if (!appended.ok()) {
    if (!joins) entries_.pop_back();
    return appended;
  }
  entry.payload = payload;
  if (!payload.empty()) entry.pin = std::move(pin);
  ++entry.frames;
  ++frames_;
  bytes_ += entry.head.size() - before + payload.size();
  NoteSize();
  return OkStatus();
}

// Of the last entry, which may be new or have grown.
void SendQueue::NoteSize() {
  const Sized last{.number = consumed_ + entries_.size() - 1,
                   .bytes = entries_.back().head.size() + entries_.back().payload.size()};
  while (!largest_.empty() && largest_.back().bytes <= last.bytes)
    largest_.pop_back();
  largest_.push_back(last);
}

std::size_t SendQueue::Peek(std::span<ByteSpan> pieces) {
  std::size_t count = 0;
  std::size_t skip = written_;
  peeked_ = 0;
  for (const Entry& entry : entries_) {
    if (count + 2 > pieces.size()) break;
    for (const ByteSpan piece : {ByteSpan(entry.head), entry.payload}) {
      const std::size_t done = std::min(skip, piece.size());
      skip -= done;
      if (done < piece.size()) pieces[count++] = piece.subspan(done);
    }
    ++peeked_;
  }
  return count;
}

void SendQueue::Consume(std::size_t written) {
  CHECK(written <= bytes_);
  bytes_ -= written;
  written_ += written;
  while (!entries_.empty()) {
    const std::size_t size = entries_.front().head.size() + entries_.front().payload.size();
    if (written_ < size) break;
    written_ -= size;
    // Moved out first: the owner of the pin may push again when it goes.
    const Entry done = std::move(entries_.front());
    entries_.pop_front();
    frames_ -= done.frames;
    if (largest_.front().number == consumed_++) largest_.pop_front();
  }
  peeked_ = 0;
}

void SendQueue::Seal(wire::FrameSeal seal) {
  CHECK(empty());
  seal_ = std::move(seal);
}

void SendQueue::Clear() {
  if (seal_ && at_boundary()) seal_->Withdraw(frames_);
  consumed_ += entries_.size();
  largest_.clear();
  const auto gone = std::exchange(entries_, {});
  peeked_ = 0;
  written_ = 0;
  bytes_ = 0;
  frames_ = 0;
}

}  // namespace optcache::net
