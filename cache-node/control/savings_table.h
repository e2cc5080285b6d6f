#pragma once

// What the sidecars of this node say that they have saved, until the coordinator has been told. Fed
// by the sidecars, read by reports.

#include <map>
#include <string>

#include "cache-node/retention/effects.h"
#include "coordination/state.h"
#include "wire/messages.h"

namespace optcache::node {

// Not thread-safe: the event loop owns it.
class SavingsTable {
 public:
  // `dataset` is the name behind the message's key. Ignored beyond coordination::kMaxDatasets of
  // one client or to be told, and if a number is beyond its limit or the wait is shorter than it
  // was.
  void OnSavings(ClientId from, const std::string& dataset, const wire::Savings& savings);
  void OnClosed(ClientId from) { clients_.erase(from); }

  // The batch for the next report: the one before, until that has been answered.
  const coordination::SavingsBatch& Batch();
  void OnAnswered(std::uint64_t number);

 private:
  std::map<ClientId, std::map<wire::DatasetKey, coordination::Savings>> clients_;
  std::map<std::string, coordination::Savings> untold_;  // by Dataset, not in batch_
  coordination::SavingsBatch batch_;                     // without datasets: it has been answered
};

}  // namespace optcache::node
