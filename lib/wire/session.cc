#include "wire/session.h"

#include <algorithm>
#include <string>

#include "wire/frame.h"

namespace optcache::wire {
namespace {

Directions DirectionOf(Role from, Role to) {
  if (from == Role::kSidecar) return kSidecarToNode;
  return to == Role::kSidecar ? kNodeToSidecar : kNodeToNode;
}

bool IsAllowed(Role from, Role to, const Message& message) {
  return (AboutOf(TypeOf(message)).directions & DirectionOf(from, to)) != 0;
}

std::unexpected<Status> Unexpected(const Message& message, const std::string& wanted) {
  return Error(Code::kInvalidArgument,
               std::string(AboutOf(TypeOf(message)).name) + " came, but " + wanted);
}

std::string Range(std::uint16_t first, std::uint16_t last) {
  return std::to_string(first) + " to " + std::to_string(last);
}

}  // namespace

Result<std::uint16_t> NegotiateVersion(const Hello& hello, VersionRange own) {
  const std::uint16_t version = std::min(hello.max_version, own.max);
  if (version < std::max(hello.min_version, own.min)) {
    return Error(Code::kInvalidArgument, "'" + hello.name + "' speaks versions " +
                                             Range(hello.min_version, hello.max_version) +
                                             ", this node " + Range(own.min, own.max) +
                                             "; update the older of the two");
  }
  return version;
}

Session Session::Accepting(VersionRange own) {
  return {State::kAwaitHello, Role::kNode, Role::kSidecar, own};
}

Session Session::Dialing(Role own_role, VersionRange offered) {
  return {State::kAwaitWelcome, own_role, Role::kNode, offered};
}

Result<Session::Event> Session::OnHello(const Message& message) {
  const auto* hello = std::get_if<Hello>(&message);
  if (hello == nullptr) return Unexpected(message, "a connection begins with Hello");
  peer_role_ = hello->role;
  ASSIGN_OR_RETURN(version_, NegotiateVersion(*hello, own_));
  state_ = State::kOpen;
  return Event::kHello;
}

Result<Session::Event> Session::OnWelcome(const Message& message) {
  if (std::holds_alternative<Refusal>(message)) return Event::kRefusal;
  const auto* welcome = std::get_if<Welcome>(&message);
  if (welcome == nullptr) return Unexpected(message, "Hello is answered by Welcome or Refusal");
  if (welcome->version < own_.min || welcome->version > own_.max) {
    return Error(Code::kInvalidArgument, "'" + welcome->name + "' chose version " +
                                             std::to_string(welcome->version) +
                                             ", which was not offered");
  }
  version_ = welcome->version;
  state_ = State::kOpen;
  return Event::kWelcome;
}

Result<Session::Event> Session::OnMessage(const Message& message) {
  if (state_ == State::kAwaitHello) return OnHello(message);
  if (state_ == State::kAwaitWelcome) return OnWelcome(message);
  if (!IsAllowed(peer_role_, own_role_, message)) {
    return Unexpected(message, peer_role_ == Role::kSidecar
                                   ? "a sidecar may not send that to a node"
                                   : "a node may not send that here");
  }
  return std::holds_alternative<Refusal>(message) ? Event::kRefusal : Event::kMessage;
}

}  // namespace optcache::wire
