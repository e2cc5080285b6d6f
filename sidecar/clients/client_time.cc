#include "sidecar/clients/client_time.h"

#include <algorithm>
#include <string>

namespace optcache::sidecar {

void ClientTime::Add(const Client& client, MonotonicTime now, TimeByState& spent) {
  const auto in = [&spent](ClientState state) -> Duration& {
    return spent[static_cast<std::size_t>(state)];
  };
  const Duration passed = now - client.since;
  if (client.waiting > 0) {
    in(ClientState::kWaiting) += passed;
  } else if (client.held > 0) {
    in(ClientState::kWorking) += passed;
  } else {
    in(ClientState::kIdle) += std::min(passed, kIdleMax);
  }
}

// What it did is counted; null: it is not known.
ClientTime::Client* ClientTime::Turn(ClientId client, MonotonicTime now) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return nullptr;
  Client& known = found->second;
  Add(known, now, spent_[static_cast<std::size_t>(known.kind)]);
  known.since = now;
  return &known;
}

void ClientTime::OnAsk(ClientId client, ClientKind kind, MonotonicTime now) {
  Client* known = Turn(client, now);
  if (known == nullptr) known = &clients_.emplace(client, Client{.since = now}).first->second;
  known->kind = kind;
  ++known->waiting;
}

void ClientTime::OnAnswer(ClientId client, bool holds, MonotonicTime now) {
  Client* const known = Turn(client, now);
  if (known == nullptr) return;
  --known->waiting;
  if (holds) ++known->held;
}

void ClientTime::OnRelease(ClientId client, MonotonicTime now) {
  if (Client* const known = Turn(client, now)) --known->held;
}

void ClientTime::OnGone(ClientId client, MonotonicTime now) {
  Turn(client, now);
  clients_.erase(client);
}

std::array<TimeByState, kClientKinds> ClientTime::Spent(MonotonicTime now) const {
  std::array<TimeByState, kClientKinds> spent = spent_;
  for (const auto& [id, client] : clients_)
    Add(client, now, spent[static_cast<std::size_t>(client.kind)]);
  return spent;
}

void ClientTime::VisitCounters(const CounterVisitor& visitor, MonotonicTime now) const {
  const auto spent = Spent(now);
  for (std::size_t i = 0; i < kClientKinds; ++i) {
    for (std::size_t j = 0; j < kClientStates; ++j) {
      visitor(MetricKind::kCounter, "optcache_client_process_seconds_total",
              {{"process", std::string(kClientKindNames[i])},
               {"state", std::string(kClientStateNames[j])}},
              ToSeconds(spent[i][j]));
    }
  }
}

}  // namespace optcache::sidecar
