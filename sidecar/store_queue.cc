#include "sidecar/store_queue.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "sidecar/joined_read.h"

namespace optcache::sidecar {

StoreQueue::Ticket StoreQueue::Add(Read read, bool urgent) {
  const Ticket ticket = ++last_ticket_;
  if (const auto place = read.dataset->PlaceOf(read.id))
    by_place_.emplace(Beside(read.dataset, *place, ticket), ticket);
  waiting_.emplace(ticket, std::move(read));
  (urgent ? urgent_ : staged_).push_back(ticket);
  StartNext();
  return ticket;
}

void StoreQueue::MakeUrgent(Ticket ticket) {
  if (waiting_.contains(ticket)) urgent_.push_back(ticket);
}

bool StoreQueue::Cancel(Ticket ticket) {
  if (!waiting_.contains(ticket)) return false;
  Take(ticket);
  return true;
}

// Out of all that knows of waiting reads but the queues, which skip what is gone.
StoreQueue::Read StoreQueue::Take(Ticket ticket) {
  const auto found = waiting_.find(ticket);
  Read read = std::move(found->second);
  waiting_.erase(found);
  if (const auto place = read.dataset->PlaceOf(read.id))
    by_place_.erase(Beside(read.dataset, *place, ticket));
  return read;
}

std::optional<StoreQueue::Joined> StoreQueue::Pop(std::deque<Ticket>& queue) {
  while (!queue.empty()) {
    const Ticket ticket = queue.front();
    queue.pop_front();
    if (!waiting_.contains(ticket)) continue;
    return TakeNeighbours(ticket, Take(ticket));
  }
  return std::nullopt;
}

// The read, and those that wait right after and right before it, by their places.
StoreQueue::Joined StoreQueue::TakeNeighbours(Ticket ticket, Read read) {
  const DatasetPort* const dataset = read.dataset;
  const auto place = dataset->PlaceOf(read.id);
  Joined reads;
  reads.push_back(std::move(read));
  if (!place) return reads;
  JoinedRead joined(*place);
  const Beside here(dataset, *place, ticket);
  const auto of_dataset = [&](const auto& entry) { return std::get<0>(entry.first) == dataset; };
  for (auto next = by_place_.upper_bound(here); next != by_place_.end() && of_dataset(*next) &&
                                                joined.TakeAfter(std::get<1>(next->first));) {
    const Ticket taken = next->second;
    ++next;
    reads.push_back(Take(taken));
  }
  std::vector<Read> before;
  for (auto next = by_place_.lower_bound(here); next != by_place_.begin();) {
    const auto previous = std::prev(next);
    if (!of_dataset(*previous) || !joined.TakeBefore(std::get<1>(previous->first))) break;
    const Ticket taken = previous->second;
    before.push_back(Take(taken));
  }
  reads.insert(reads.begin(), std::make_move_iterator(before.rbegin()),
               std::make_move_iterator(before.rend()));
  joined_ += reads.size() - 1;
  return reads;
}

void StoreQueue::StartNext() {
  while (running_ < concurrency_ && parked_ < kParkedMax) {
    std::optional<Joined> reads = Pop(urgent_);
    if (!reads && parked_ < kParkedStagedMax) reads = Pop(staged_);
    if (!reads) return;
    Start(*std::move(reads));
  }
}

// What the store says after the read's end does not count.
void StoreQueue::Park(Run& run, bool waits) {
  if (run.left == 0 || run.parked == waits) return;
  run.parked = waits;
  --(waits ? running_ : parked_);
  ++(waits ? parked_ : running_);
  StartNext();
}

void StoreQueue::Start(Joined reads) {
  ++running_;
  // Shared by the ends of the samples, which come one by one.
  const auto run = std::make_shared<Run>(Run{.left = reads.size()});
  const auto on_wait = [this, run](bool waits) { Park(*run, waits); };
  const auto end = [this, run](StorePort::Done done) {
    return [this, run, done = std::move(done)](Result<std::uint32_t> crc) {
      if (--run->left == 0) --(run->parked ? parked_ : running_);
      if (!crc) ++failures_;
      StartNext();
      done(std::move(crc));
    };
  };
  const DatasetPort& dataset = *reads.front().dataset;
  if (reads.size() == 1) {
    Read& read = reads.front();
    store_.Read(dataset, read.id, std::move(read.into), on_wait, end(std::move(read.done)));
    return;
  }
  std::vector<StorePort::Part> parts;
  parts.reserve(reads.size());
  for (Read& read : reads) {
    parts.push_back(
        {.id = read.id, .into = std::move(read.into), .done = end(std::move(read.done))});
  }
  store_.ReadTogether(dataset, std::move(parts), on_wait);
}

}  // namespace optcache::sidecar
