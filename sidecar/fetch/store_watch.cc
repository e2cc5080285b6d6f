#include "sidecar/fetch/store_watch.h"

namespace optcache::sidecar {

void StoreWatch::Start() {
  Look();
  alarms_.After(kLookEvery, [this] { Start(); });
}

void StoreWatch::OnNodeUp() {
  told_.clear();
  Look();
}

// A node takes a store that it has heard nothing of for one that was not tried.
void StoreWatch::Look() {
  if (!node_.connected()) return;
  const MonotonicTime now = alarms_.Now();
  for (const wire::StoreHealth& health : store_.Health()) {
    Told& told = told_[health.dataset];
    const bool due = health.state != wire::StoreState::kUntried && now - told.at >= kTellEvery;
    if (health.state == told.state && !due) continue;
    told = {.state = health.state, .at = now};
    node_.Send(0, health);
  }
}

}  // namespace optcache::sidecar
