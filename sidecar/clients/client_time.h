#pragma once

// What the training processes that read do with their time. Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/counters.h"
#include "sidecar/ports/ports.h"

namespace optcache::sidecar {

enum class ClientState : std::uint8_t {
  kWaiting,  // for samples
  kWorking,  // has samples in use, as a worker that decodes them
  kIdle,     // neither: the loader is ahead, or the process computes
};
inline constexpr std::array<std::string_view, 3> kClientStateNames = {"waiting", "working", "idle"};
inline constexpr std::size_t kClientStates = kClientStateNames.size();
using TimeByState = std::array<Duration, kClientStates>;

// Who reads: the process that attached the loader, or a worker of it.
enum class ClientKind : std::uint8_t { kTrainer, kWorker };
inline constexpr std::array<std::string_view, 2> kClientKindNames = {"trainer", "worker"};
inline constexpr std::size_t kClientKinds = kClientKindNames.size();

// Not thread-safe: a value with one owner. No call takes longer the more samples there are.
class ClientTime {
 public:
  // A longer pause counts as this much: workers that stay between two validations have nothing to
  // do, which says nothing about training.
  static constexpr Duration kIdleMax = std::chrono::minutes(1);

  // A request of it begins to wait; of a process that is not known, time is counted from now on.
  void OnAsk(ClientId client, ClientKind kind, MonotonicTime now);
  // That request has ended. `holds`: the process has samples of it in use.
  void OnAnswer(ClientId client, bool holds, MonotonicTime now);
  // It has given them back.
  void OnRelease(ClientId client, MonotonicTime now);
  void OnGone(ClientId client, MonotonicTime now);

  // Until `now`, by kind; never falls.
  std::array<TimeByState, kClientKinds> Spent(MonotonicTime now) const;
  void VisitCounters(const CounterVisitor& visitor, MonotonicTime now) const;

 private:
  struct Client {
    ClientKind kind = ClientKind::kTrainer;
    std::size_t waiting = 0;  // requests that are not answered
    std::size_t held = 0;     // answers in use
    MonotonicTime since{};    // it does what it does
  };
  // What it did last goes into `spent`.
  static void Add(const Client& client, MonotonicTime now, TimeByState& spent);
  Client* Turn(ClientId client, MonotonicTime now);

  std::unordered_map<ClientId, Client> clients_;
  std::array<TimeByState, kClientKinds> spent_{};
};

}  // namespace optcache::sidecar
