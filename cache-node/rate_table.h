#pragma once

// What the sidecars of this node want of the stores that have limits, and what they may have of
// them. Fed by the sidecars and by the coordinator's answers, read by reports.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cache-node/effects.h"
#include "coordination/state.h"
#include "wire/messages.h"

namespace optcache::node {

// Not thread-safe: the event loop owns it.
class RateTable {
 public:
  // `dataset` is the name behind the message's key. True if nothing was heard of it from this
  // client before, so that the shares of the others change. Ignored beyond
  // coordination::kMaxDatasets.
  bool OnDemand(ClientId from, const std::string& dataset, const wire::StoreDemand& demand);
  void OnClosed(ClientId from);

  std::vector<coordination::DatasetDemand> Report() const;
  // Of a Dataset that is missing, what the coordinator said before stays.
  void OnShares(const std::vector<coordination::DatasetShare>& shares);

  struct Told {
    ClientId to = 0;
    wire::StoreShare share;
  };
  // Of each Dataset of which the coordinator has said something, to each client that has, together
  // never more than it said.
  std::vector<Told> Divide() const;

 private:
  struct Demand {
    coordination::RateDemand requests;
    coordination::RateDemand bytes;
  };
  // A client may have a dataset by an earlier manifest, too, which is of the same store.
  using Asker = std::pair<ClientId, wire::DatasetKey>;
  struct Dataset {
    std::map<Asker, Demand> askers;
    std::optional<coordination::DatasetShare> share;
  };

  std::map<std::string, Dataset> datasets_;
};

}  // namespace optcache::node
