#pragma once

// What one side of a connection may say when: Hello, then Welcome or Refusal, then what the
// peer's role allows.

#include <cstdint>

#include "base/result.h"
#include "wire/messages.h"

namespace optcache::wire {

// The highest version that both sides speak; kInvalidArgument names both ranges if there is none.
Result<std::uint16_t> NegotiateVersion(const Hello& hello, VersionRange own = {});

// One connection's protocol state on one side. Pure. Not thread-safe: a value with one owner.
class Session {
 public:
  // The side that listens: a node. It waits for Hello.
  static Session Accepting(VersionRange own = {});
  // The side that has sent its Hello, which offered these versions, and waits for Welcome.
  static Session Dialing(Role own_role, VersionRange offered = {});

  enum class Event {
    kHello,    // answer Welcome with version(), or Refusal and close
    kWelcome,  // the connection is open
    kRefusal,  // the peer closes; the message says why
    kMessage,  // for the program
  };

  // Takes the next message that came. kInvalidArgument: the peer may not say that now, or speaks
  // other versions; tell it in a Refusal and close.
  Result<Event> OnMessage(const Message& message);

  bool open() const { return state_ == State::kOpen; }
  // Known after kHello or kWelcome; the role also after a Hello of other versions.
  std::uint16_t version() const { return version_; }
  Role peer_role() const { return peer_role_; }

 private:
  enum class State { kAwaitHello, kAwaitWelcome, kOpen };
  Session(State state, Role own_role, Role peer_role, VersionRange own)
      : state_(state), own_role_(own_role), peer_role_(peer_role), own_(own) {}

  Result<Event> OnHello(const Message& message);
  Result<Event> OnWelcome(const Message& message);

  State state_;
  Role own_role_;
  Role peer_role_;
  VersionRange own_;
  std::uint16_t version_ = 0;
};

}  // namespace optcache::wire
