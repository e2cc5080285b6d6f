#include "sidecar/store_queue.h"

#include <utility>

namespace optcache::sidecar {

StoreQueue::Ticket StoreQueue::Add(Read read, bool urgent) {
  const Ticket ticket = ++last_ticket_;
  waiting_.emplace(ticket, std::move(read));
  (urgent ? urgent_ : staged_).push_back(ticket);
  StartNext();
  return ticket;
}

void StoreQueue::MakeUrgent(Ticket ticket) {
  if (waiting_.contains(ticket)) urgent_.push_back(ticket);
}

bool StoreQueue::Cancel(Ticket ticket) {
  return waiting_.erase(ticket) > 0;
}

bool StoreQueue::Pop(std::deque<Ticket>& queue, Read& read) {
  while (!queue.empty()) {
    const auto found = waiting_.find(queue.front());
    queue.pop_front();
    if (found == waiting_.end()) continue;
    read = std::move(found->second);
    waiting_.erase(found);
    return true;
  }
  return false;
}

void StoreQueue::StartNext() {
  Read read;
  while (running_ < concurrency_ && (Pop(urgent_, read) || Pop(staged_, read))) {
    Start(std::move(read));
  }
}

void StoreQueue::Start(Read read) {
  ++running_;
  store_.Read(*read.dataset, read.id, read.into,
              [this, done = std::move(read.done)](Result<std::uint32_t> crc) {
                --running_;
                if (!crc) ++failures_;
                StartNext();
                done(std::move(crc));
              });
}

}  // namespace optcache::sidecar
