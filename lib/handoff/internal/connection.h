#pragma once

#include <map>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "handoff/channel.h"
#include "handoff/frame_buffer.h"
#include "handoff/internal/output_queue.h"

namespace optcache::handoff::internal {

// One client of a ChannelServer. Not thread-safe: the server's own.
class Connection {
 public:
  enum class State {
    kNew,      // Hello has not come
    kOpen,     // may ask
    kGivenUp,  // what comes is thrown away until the client closes its end
  };
  enum class ReadResult { kSome, kNothing, kClosed };

  Connection(ClientId client, UniqueFd connected, MonotonicTime now);

  // Reads once what there is.
  ReadResult Read();
  // The next request, unless it is not whole yet or too many answers wait to be taken.
  Result<std::optional<Frame>> NextFrame();

  // Writes what the client takes. False: the client takes nothing any more.
  bool Write(MonotonicTime now);

  // After the last words in `output`, if there are any, nothing is said or heard.
  void GiveUp();

  // What is wrong with the client's pace, if anything.
  Status CheckPace(MonotonicTime now);

  // Events to wait for (EPOLLIN, EPOLLOUT), and those that are waited for.
  std::uint32_t Interest() const;

  const ClientId id;
  const UniqueFd socket;
  const Peer peer;
  State state = State::kNew;
  std::uint16_t version = 0;  // of the protocol, from Hello on
  bool has_arena = false;     // its end has been passed the arena's descriptor
  OutputQueue output;
  // Unanswered Gets, and when the client was last told anything of each.
  std::map<RequestId, MonotonicTime> waiting;
  std::uint32_t watched = 0;

 private:
  bool Backlogged() const { return output.bytes() > kMaxQueuedBytes; }

  FrameBuffer input_;
  MonotonicTime opened_at_;
  bool frames_left_ = false;  // not taken for the backlog: to be looked at when it has gone
  std::optional<MonotonicTime> frame_begun_at_;  // set by CheckPace
  std::uint64_t frames_ = 0;
  std::uint64_t frames_at_begin_ = 0;
  MonotonicTime written_at_;
};

}  // namespace optcache::handoff::internal
