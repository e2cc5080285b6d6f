#include "cache-node/mover.h"

#include <algorithm>

namespace optcache::node {
namespace {

// A push that was sent and not answered: the connection may have died with it. Pushes are
// idempotent, so it is sent again.
constexpr Duration kUnansweredAfter = std::chrono::seconds(2);

}  // namespace

void Mover::Add(SampleId id, wire::MemberId receiver, const cache::Entry& entry, MonotonicTime now,
                std::optional<MonotonicTime> deadline) {
  moves_[id] = Move{.receiver = receiver,
                    .bytes = entry.bytes,
                    .crc = entry.crc,
                    .kept_after = entry.kept_after,
                    .due = now,
                    .deadline = deadline.value_or(now + limits_.deadline),
                    .retry = limits_.first_retry};
}

bool Mover::OnReply(SampleId id, bool accepted, MonotonicTime now) {
  const auto it = moves_.find(id);
  if (it == moves_.end() || !it->second.in_flight) return false;
  Move& move = it->second;
  if (accepted) {
    ++counters_.moves;
    counters_.moved_bytes += move.bytes->size();
    moves_.erase(it);
    return true;
  }
  ++counters_.moves_refused;
  move.in_flight = false;
  move.due = now + move.retry;
  move.retry = std::min<Duration>(move.retry * 2, std::chrono::seconds(1));
  return false;
}

std::vector<SampleId> Mover::Tick(MonotonicTime now) {
  std::vector<SampleId> lost;
  std::map<wire::MemberId, Load> loads;
  for (auto& [id, move] : moves_) {
    if (now >= move.deadline) {
      lost.push_back(id);
    } else if (move.in_flight && now - move.sent >= kUnansweredAfter) {
      move.in_flight = false;
      move.due = now;
    } else if (move.in_flight) {
      Load& load = loads[move.receiver];
      ++load.pushes;
      load.bytes += move.bytes->size();
    }
  }
  for (const SampleId id : lost)
    moves_.erase(id);
  Announce();
  for (auto& [id, move] : moves_) {
    if (!move.in_flight && now >= move.due) Send(id, move, loads[move.receiver], now);
  }
  return lost;
}

void Mover::Announce() {
  std::map<wire::MemberId, wire::Announce> messages;
  for (auto& [id, move] : moves_) {
    if (move.announced) continue;
    wire::Announce& message = messages[move.receiver];
    if (message.ids.size() >= wire::kMaxItems) continue;
    message.dataset = dataset_;
    message.ids.push_back(id);
    move.announced = true;
  }
  for (const auto& [receiver, message] : messages)
    effects_.Send(receiver, 0, message, nullptr);
}

void Mover::Send(SampleId id, Move& move, Load& load, MonotonicTime now) {
  const ByteCount size = move.bytes->size();
  const bool full = load.pushes >= limits_.in_flight ||
                    (load.pushes > 0 && load.bytes + size > limits_.in_flight_bytes);
  if (full) return;
  const wire::Push push{
      .dataset = dataset_,
      .stream = move.kept_after.stream,
      .item = {.pass = move.kept_after.pass, .position = move.kept_after.position, .id = id},
      .crc = move.crc};
  if (!effects_.Send(move.receiver, 0, push, move.bytes)) {
    move.due = now + move.retry;
    return;
  }
  move.in_flight = true;
  move.sent = now;
  ++load.pushes;
  load.bytes += size;
}

ByteCount Mover::outbox_bytes() const {
  ByteCount sum = 0;
  for (const auto& [_, move] : moves_)
    sum += move.bytes->size();
  return sum;
}

}  // namespace optcache::node
