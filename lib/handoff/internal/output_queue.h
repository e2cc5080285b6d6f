#pragma once

#include <deque>

#include "base/result.h"
#include "base/unique_fd.h"
#include "handoff/codec.h"

namespace optcache::handoff::internal {

// Bytes on their way to a client, some with a file descriptor. Not thread-safe: one owner.
class OutputQueue {
 public:
  // `fd`, if valid, is passed with the piece's first byte.
  void Push(Piece piece, UniqueFd fd = UniqueFd());
  void Clear();

  // Writes what the socket takes. False: nothing of it, the socket is full. kUnavailable or another
  // error: the client takes nothing any more.
  Result<bool> WriteTo(int socket);

  bool empty() const { return chunks_.empty(); }
  ByteCount bytes() const { return bytes_; }

 private:
  struct Chunk {
    Piece piece;
    UniqueFd fd;
  };

  Result<std::size_t> WriteOnce(int socket);
  void Drop(std::size_t written);

  std::deque<Chunk> chunks_;
  std::size_t front_written_ = 0;  // of the first chunk
  ByteCount bytes_ = 0;            // not written yet
};

}  // namespace optcache::handoff::internal
