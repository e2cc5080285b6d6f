#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "wire/messages.h"
#include "wire/seal.h"

namespace optcache::net {

// Frames that wait to be written, as pieces for a gather-write: heads are held here, payloads where
// the caller has them. Not thread-safe: a value with one owner.
class SendQueue {
 public:
  // kResourceExhausted: the message is larger than one may be, and is not in the queue.
  Status Push(std::uint32_t request_id, const wire::Message& message, ByteSpan payload,
              std::shared_ptr<const void> pin);

  // Fills `pieces` with what comes next and returns how many. They stay where they are until they
  // are consumed, whatever is pushed meanwhile.
  std::size_t Peek(std::span<ByteSpan> pieces);

  // The first `written` bytes are done; drops the pins of the payloads among them.
  void Consume(std::size_t written);

  // From the next frame on they are sealed. Only while it is empty.
  void Seal(wire::FrameSeal seal);

  // At a boundary, what is pushed then follows what has been written.
  void Clear();

  bool empty() const { return entries_.empty(); }
  ByteCount bytes() const { return bytes_; }
  std::size_t frames() const { return frames_; }
  // Of all but the largest frame, with the heads that are written together with that.
  ByteCount bytes_beside_largest() const {
    return largest_.empty() ? 0 : bytes_ + written_ - largest_.front().bytes;
  }
  // Nothing of the first frame has been written.
  bool at_boundary() const { return written_ == 0; }

 private:
  // Heads of frames without payload are written as one piece up to this size.
  static constexpr std::size_t kMaxJoinedHeads = 16U << 10U;

  struct Entry {
    std::vector<std::byte> head;  // of one frame or more; the last may have a payload
    ByteSpan payload;             // kept alive by `pin`
    std::shared_ptr<const void> pin;
    std::size_t frames = 0;
  };

  struct Sized {
    std::uint64_t number = 0;  // of an entry, from the first one on
    ByteCount bytes = 0;
  };

  void NoteSize();

  std::optional<wire::FrameSeal> seal_;
  std::deque<Entry> entries_;
  std::uint64_t consumed_ = 0;  // entries
  // Those of entries_ that no later one is larger than, so the first is the largest of all.
  std::deque<Sized> largest_;
  std::size_t peeked_ = 0;   // entries whose heads the writer may be reading
  std::size_t written_ = 0;  // bytes of the first entry
  ByteCount bytes_ = 0;
  std::size_t frames_ = 0;
};

}  // namespace optcache::net
