#pragma once

// What the sidecars of this node want of the stores that have limits, and what they may have of
// them. Fed by the sidecars and by the coordinator's answers, read by reports.

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cache-node/retention/effects.h"
#include "coordination/state.h"
#include "wire/messages.h"

namespace optcache::node {

// Not thread-safe: the event loop owns it.
class RateTable {
 public:
  // More than this many times what it was last told no sidecar can have used for long. What says so
  // is taken for held back: a number that is made up would be a part of what its node reports.
  static constexpr double kMostWanted = 4;

  // Of a pod the last word counts, by whatever connection it came, and by whatever manifest, which
  // is of the same store. `pod`: its uid; empty: each connection asks for itself. `dataset` is the
  // name behind the message's key; empty: the node does not know it any more, and who has asked by
  // that key asks on. True if nothing was heard of it from this asker before, so that the shares of
  // the others change. Ignored beyond coordination::kMaxDatasets.
  bool OnDemand(ClientId from, const std::string& pod, const std::string& dataset,
                const wire::StoreDemand& demand);
  // It may not say so (any more), and has no part.
  void OnRefused(ClientId from, const std::string& pod, wire::DatasetKey key);
  void OnClosed(ClientId from);

  std::vector<coordination::DatasetDemand> Report() const;
  // Of a Dataset that is missing, what the coordinator said before stays for kSharesLast.
  void OnShares(const std::vector<coordination::DatasetShare>& shares, MonotonicTime now);
  // Then sidecars hear nothing more of it: they take as much as they need to go on.
  static constexpr Duration kSharesLast = std::chrono::seconds(30);

  struct Told {
    ClientId to = 0;
    wire::StoreShare share;
  };
  // Of each Dataset of which the coordinator has said something, to the latest connection of each
  // that asks, together never more than it said.
  std::vector<Told> Divide(MonotonicTime now);

 private:
  using AskerId = std::pair<std::string, ClientId>;  // a pod and 0, or none and its connection
  struct Rate {
    double wanted = 0;
    bool is_held_back = false;
    double told = 0;
  };
  struct Asker {
    ClientId client = 0;
    wire::DatasetKey key = 0;
    Rate requests;
    Rate bytes;
  };
  struct Dataset {
    std::map<AskerId, Asker> askers;
    std::optional<coordination::DatasetShare> share;
    MonotonicTime heard{};  // of the share
  };
  // The Dataset of which this asker has asked by that key; empty: none.
  std::string NameOf(const AskerId& id, wire::DatasetKey key) const;
  template <typename Gone>
  void EraseAskers(Gone gone);
  static AskerId IdOf(ClientId from, const std::string& pod) {
    return {pod, pod.empty() ? from : 0};
  }
  static coordination::RateDemand DemandOf(const Rate& rate);
  static void Divide(double limit, Rate Asker::* rate, Dataset& dataset);

  std::map<std::string, Dataset> datasets_;
};

}  // namespace optcache::node
