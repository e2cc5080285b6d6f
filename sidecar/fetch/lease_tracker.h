#pragma once

// The leases under which this sidecar reads the store, and what it owes its node about them.

#include <map>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "sidecar/ports/ports.h"
#include "wire/messages.h"

namespace optcache::sidecar {

// A lease lives wire::kLeaseSeconds unless renewed: while a read lasts its lease is held here and
// renewed; when the read has ended the node is told, many leases in a message. Not thread-safe.
class LeaseTracker {
 public:
  explicit LeaseTracker(NodePort& node) : node_(node) {}

  // From now on the lease is renewed. Lease 0 is none and asks for nothing, here and below: a read
  // without a lease leaves alone what another read of the sample holds.
  void Hold(wire::DatasetKey dataset, SampleId id, wire::LeaseId lease);
  // The lease goes back with a Put: nothing more is owed.
  void Spend(wire::DatasetKey dataset, SampleId id, wire::LeaseId lease);
  // The read has ended, well (kDone) or not (kFailed), and nothing is put back.
  void End(wire::DatasetKey dataset, SampleId id, wire::LeaseId lease, wire::LeaseEvent how);

  // Sends what is owed.
  void Flush();
  // Sends a renewal of all leases held.
  void Renew();
  // The node is gone, and the leases with it.
  void Clear();

  bool empty() const { return held_.empty(); }

 private:
  using Lease = std::pair<SampleId, wire::LeaseId>;
  void SendAll(wire::DatasetKey dataset, wire::LeaseEvent event, const std::vector<Lease>& leases);

  NodePort& node_;
  std::map<std::pair<wire::DatasetKey, SampleId>, wire::LeaseId> held_;
  std::map<std::pair<wire::DatasetKey, wire::LeaseEvent>, std::vector<Lease>> owed_;
};

}  // namespace optcache::sidecar
