#include "sidecar/clients/savings_watch.h"

namespace optcache::sidecar {

void SavingsWatch::Start() {
  Tell();
  alarms_.After(kTellEvery, [this] { Start(); });
}

void SavingsWatch::OnNodeUp() {
  for (auto& [_, told] : told_)
    told.before = told.in_all;
  Tell();
}

// Also what has not changed: a node may not have known the dataset before.
void SavingsWatch::Tell() {
  if (!node_.connected()) return;
  for (const DatasetSaved& of : saved_()) {
    Told& told = told_[of.key];
    const auto wait = std::chrono::duration_cast<std::chrono::microseconds>(of.wait);
    told.in_all = {.dataset = of.key,
                   .requests = of.saved.requests,
                   .bytes = of.saved.bytes,
                   .wait_us = static_cast<std::uint64_t>(wait.count())};
    node_.Send(0, wire::Savings{.dataset = of.key,
                                .requests = told.in_all.requests - told.before.requests,
                                .bytes = told.in_all.bytes - told.before.bytes,
                                .wait_us = told.in_all.wait_us - told.before.wait_us});
  }
}

}  // namespace optcache::sidecar
