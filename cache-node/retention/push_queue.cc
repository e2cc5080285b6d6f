// Keeps the moves of all receivers, and sends each when its turn has come and its receiver has
// room.
//
// Every move has one place: it waits for its turn, waits for a time, is read from the disk, or is
// in flight.
//
//   Add ─► kWaiting ──────── sent ──────► kInFlight ── accepted ─► gone
//           ▲  │  └─ on disk ─► kLoading      │
//           │  │ not sent          │ read     │ refused, or no answer for 2 s
//           └──┴──── kLater ◄──────┴──────────┘      (kLater ends when `due` has come)
//
// All pushes of an order have one request id, so an answer that comes late counts if the order has
// been sent again by then: to what waits to be sent it does not count, nor does one to an order
// that was replaced meanwhile.
//
// A move whose deadline has passed is given up, wherever it is. Enter and Leave are the only
// functions that change the place. They keep the index of that place, and the pushes and bytes that
// are charged to the receiver. later_, sent_ and deadlines_ are ordered by time, so a Tick looks at
// what is due and not at all moves; entries of moves that have gone since are skipped.

#include "cache-node/retention/push_queue.h"

#include <algorithm>

namespace optcache::node {
namespace {

// A push that was sent and not answered: the connection may have died with it. Pushes are
// idempotent, so it is sent again.
constexpr Duration kUnansweredAfter = std::chrono::seconds(2);

}  // namespace

void PushQueue::Add(const Order& order, const cache::Entry& entry, MonotonicTime now) {
  Cancel(order.id);
  const auto deadline = order.deadline.value_or(now + limits_.deadline);
  Move& move = moves_[order.id];
  move = {.receiver = order.receiver,
          .request_id = effects_.NewRequestId(),
          .bytes = entry.bytes,
          .size = entry.size,
          .crc = entry.crc,
          .kept_after = entry.kept_after,
          .after = order.after,
          .due = now,
          .deadline = deadline,
          .retry = limits_.first_retry,
          .on_disk = entry.on_disk,
          .relocates = order.relocates,
          .turn = order.turn};
  bytes_ += move.size;
  deadlines_.emplace(deadline, order.id);
  receivers_[move.receiver].unannounced.push_back(order.id);
  Enter(order.id, move, Place::kWaiting);
}

void PushQueue::Cancel(SampleId id) {
  const auto move = moves_.find(id);
  if (move == moves_.end()) return;
  Leave(id, move->second);
  bytes_ -= move->second.size;
  moves_.erase(move);
}

// Every move is in one place: where it waits, or what is charged for it, is kept here and in Leave.
void PushQueue::Enter(SampleId id, Move& move, Place place) {
  move.place = place;
  Receiver& receiver = receivers_[move.receiver];
  if (place == Place::kWaiting) {
    receiver.waiting.emplace(move.turn, id);
  } else if (place == Place::kLater) {
    later_.emplace(move.due, id);
  } else {
    ++receiver.pushes;
    receiver.bytes += move.size;
  }
}

void PushQueue::Leave(SampleId id, const Move& move) {
  Receiver& receiver = receivers_[move.receiver];
  if (move.place == Place::kWaiting) {
    receiver.waiting.erase({move.turn, id});
  } else if (move.place == Place::kLater) {
    later_.erase({move.due, id});
  } else {
    --receiver.pushes;
    receiver.bytes -= move.size;
  }
}

void PushQueue::PutOff(SampleId id, Move& move, MonotonicTime due) {
  Leave(id, move);
  move.due = due;
  Enter(id, move, Place::kLater);
}

std::vector<SampleId> PushQueue::CancelWaiting() {
  std::vector<SampleId> cancelled;
  for (const auto& [id, move] : moves_) {
    if (move.place != Place::kInFlight) cancelled.push_back(id);
  }
  for (const SampleId id : cancelled)
    Cancel(id);
  return cancelled;
}

void PushQueue::Provide(SampleId id, cache::SampleRef bytes, MonotonicTime now) {
  const auto it = moves_.find(id);
  if (it == moves_.end() || it->second.place != Place::kLoading) return;
  Move& move = it->second;
  move.bytes = std::move(bytes);
  PutOff(id, move, move.bytes ? now : now + move.retry);
}

bool PushQueue::WaitsInMemory(SampleId id) const {
  const auto it = moves_.find(id);
  return it != moves_.end() && it->second.place != Place::kInFlight && it->second.bytes != nullptr;
}

void PushQueue::LiesOnDisk(SampleId id) {
  const auto it = moves_.find(id);
  if (it == moves_.end()) return;
  it->second.on_disk = true;
  if (it->second.place != Place::kInFlight) it->second.bytes.reset();
}

bool PushQueue::Awaits(SampleId id, std::uint32_t request_id) const {
  const auto it = moves_.find(id);
  return it != moves_.end() && it->second.request_id == request_id;
}

bool PushQueue::OnReply(SampleId id, bool accepted, MonotonicTime now) {
  const auto it = moves_.find(id);
  if (it == moves_.end() || it->second.place != Place::kInFlight) return false;
  Move& move = it->second;
  if (accepted) {
    if (move.relocates) {
      ++counters_.relocated;
      counters_.relocated_bytes += move.size;
    } else {
      ++counters_.moves;
      counters_.moved_bytes += move.size;
      passes_.OnMoved(move.after, move.size);
    }
    Cancel(id);
    return true;
  }
  ++counters_.moves_refused;
  if (move.on_disk) move.bytes.reset();  // read again when it is asked again
  PutOff(id, move, now + move.retry);
  move.retry = std::min<Duration>(move.retry * 2, std::chrono::seconds(1));
  return false;
}

std::vector<SampleId> PushQueue::Tick(MonotonicTime now) {
  std::vector<SampleId> lost = GiveUpLate(now);
  SendAgain(now);
  for (auto it = receivers_.begin(); it != receivers_.end();) {
    auto& [member, receiver] = *it;
    Announce(member, receiver);
    while (!receiver.waiting.empty()) {
      const SampleId id = receiver.waiting.begin()->second;
      Move& move = moves_.at(id);
      if (!HasRoom(receiver, move.size) || !Send(id, move, now)) break;
    }
    const bool is_idle =
        receiver.waiting.empty() && receiver.unannounced.empty() && receiver.pushes == 0;
    it = is_idle ? receivers_.erase(it) : std::next(it);
  }
  return lost;
}

std::vector<SampleId> PushQueue::GiveUpLate(MonotonicTime now) {
  std::vector<SampleId> lost;
  while (!deadlines_.empty() && deadlines_.top().first <= now) {
    const auto [deadline, id] = deadlines_.top();
    deadlines_.pop();
    const auto move = moves_.find(id);
    if (move == moves_.end() || move->second.deadline != deadline) continue;
    if (move->second.relocates) ++counters_.relocations_lost;
    lost.push_back(id);
    Cancel(id);
  }
  return lost;
}

// What was not answered, and what is due again.
void PushQueue::SendAgain(MonotonicTime now) {
  while (!sent_.empty() && now - sent_.front().first >= kUnansweredAfter) {
    const auto [sent, id] = sent_.front();
    sent_.pop_front();
    const auto move = moves_.find(id);
    if (move == moves_.end() || move->second.place != Place::kInFlight ||
        move->second.sent != sent) {
      continue;
    }
    PutOff(id, move->second, now);
  }
  while (!later_.empty() && later_.begin()->first <= now) {
    const SampleId id = later_.begin()->second;
    Move& move = moves_.at(id);
    Leave(id, move);
    Enter(id, move, Place::kWaiting);
  }
}

void PushQueue::Announce(wire::MemberId member, Receiver& receiver) {
  wire::Announce message{.dataset = dataset_};
  while (!receiver.unannounced.empty() && message.ids.size() < wire::kMaxItems) {
    const SampleId id = receiver.unannounced.front();
    receiver.unannounced.pop_front();
    const auto move = moves_.find(id);
    if (move == moves_.end() || move->second.receiver != member || move->second.announced) continue;
    move->second.announced = true;
    message.ids.push_back(id);
  }
  if (!message.ids.empty()) effects_.Send(member, 0, message, nullptr);
}

bool PushQueue::HasRoom(const Receiver& receiver, ByteCount size) const {
  if (receiver.pushes == 0) return true;
  return receiver.pushes < limits_.in_flight && receiver.bytes + size <= limits_.in_flight_bytes;
}

// False: this receiver, or the disk, takes no more just now.
bool PushQueue::Send(SampleId id, Move& move, MonotonicTime now) {
  if (!move.bytes) {
    Leave(id, move);
    Enter(id, move, Place::kLoading);
    if (load_ && load_(id)) return true;
    PutOff(id, move, now + move.retry);
    return false;
  }
  const wire::Push push{
      .dataset = dataset_,
      .stream = move.kept_after.stream,
      .item = {.pass = move.kept_after.pass, .position = move.kept_after.position, .id = id},
      .crc = move.crc};
  if (!effects_.Send(move.receiver, move.request_id, push, move.bytes)) {
    PutOff(id, move, now + move.retry);
    return false;
  }
  Leave(id, move);
  move.sent = now;
  Enter(id, move, Place::kInFlight);
  sent_.emplace_back(now, id);
  return true;
}

}  // namespace optcache::node
