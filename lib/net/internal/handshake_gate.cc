#include "net/internal/handshake_gate.h"

#include <algorithm>
#include <utility>

namespace optcache::net {

HandshakeGate::Pace::Pace(double per_second, int burst)
    : interval_(FromSeconds(1 / per_second)), burst_(burst) {}

void HandshakeGate::Pace::Take(MonotonicTime now) {
  full_ = std::max(full_, now) + interval_;
}

void HandshakeGate::Enter(const std::string& source, std::uint64_t id, Begin begin) {
  const auto found =
      sources_
          .try_emplace(source,
                       Source{.pace = Pace(pace_.per_second_of_source, pace_.burst_of_source),
                              .waiting = {}})
          .first;
  found->second.waiting.emplace(id, std::move(begin));
  Run();
  const auto still = sources_.find(source);
  if (still != sources_.end() && still->second.waiting.contains(id)) ++delayed_;
}

void HandshakeGate::Leave(const std::string& source, std::uint64_t id) {
  const auto found = sources_.find(source);
  if (found != sources_.end()) found->second.waiting.erase(id);
}

void HandshakeGate::Run() {
  const MonotonicTime now = SystemClock().Now();
  std::vector<Begin> ready;
  const std::optional<MonotonicTime> next = TakeTurns(now, ready);
  if (next) {
    timer_ = loop_.After(std::max(*next - now, Duration::zero()), [this] { Run(); });
  } else {
    timer_.Cancel();
  }
  for (Begin& begin : ready)
    begin();
}

// Takes out those that may begin now, one of each source in a turn. Returns when to look again, if
// somebody waits.
std::optional<MonotonicTime> HandshakeGate::TakeTurns(MonotonicTime now,
                                                      std::vector<Begin>& ready) {
  std::optional<MonotonicTime> next;
  for (bool more = true; more;) {
    more = false;
    next.reset();
    auto at = sources_.upper_bound(last_);
    for (std::size_t left = sources_.size(); left > 0; --left) {
      if (at == sources_.end()) at = sources_.begin();
      auto& [name, source] = *at;
      if (source.waiting.empty()) {
        at = source.pace.is_rested(now) ? sources_.erase(at) : std::next(at);
        continue;
      }
      if (now < all_.next()) return all_.next();
      if (now >= source.pace.next()) {
        source.pace.Take(now);
        all_.Take(now);
        ready.push_back(std::move(source.waiting.extract(source.waiting.begin()).mapped()));
        last_ = name;
        more = true;
      }
      if (!source.waiting.empty()) {
        next = next ? std::min(*next, source.pace.next()) : source.pace.next();
      }
      ++at;
    }
  }
  return next;
}

}  // namespace optcache::net
