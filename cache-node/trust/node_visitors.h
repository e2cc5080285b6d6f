#pragma once

// What the node of a cluster lets the pods of its machine do, message by message, and for whom the
// samples are that they put (docs/formats/wire.md, "Who is believed").

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "cache-node/control/stream_table.h"
#include "cache-node/retention/private_entries.h"
#include "cache-node/trust/authorizer.h"
#include "cache-node/trust/refusal_counters.h"
#include "coordination/state.h"
#include "dataset/digest.h"
#include "net/event_loop.h"
#include "net/worker_thread.h"

namespace optcache::node {

// What a client's puts of one dataset are worth.
struct PutTerms {
  BorrowerId borrower =
      kNoBorrower;        // for whom they are; kNoBorrower: for all who may use the dataset
  bool to_prove = false;  // by the manifest's digest, before they are kept
};

// What may wait for its proof, unless it is one sample alone: this many bytes, of which each sample
// takes its own and its share as one of this many.
inline constexpr ByteCount kMaxProofBytes = 64_MiB;
inline constexpr std::size_t kMaxProofs = 4096;

// Used on the loop's thread only. Clients that no door let in are nodes, which are believed.
class NodeVisitors {
 public:
  // What is passed outlives this.
  NodeVisitors(net::EventLoop& loop, const Clock& clock, Authorizer& door,
               RefusalCounters& refusal_counters, const StreamTable& streams)
      : door_(door),
        refusal_counters_(refusal_counters),
        streams_(streams),
        prover_(loop, clock, kMaxProofs) {}

  // May `client` say that? An error: this message is not heard (Authorizer::AuthorizeMessage). A
  // read or put of a stream that this pod has not announced, or of a pass far ahead of its ranks
  // there, becomes one without an order: it changes nobody's plan, also on the nodes that are asked
  // for it.
  Status Admit(ClientId client, wire::Message& message);

  PutTerms TermsOf(ClientId client, const std::string& dataset, bool has_digests);
  // The borrowers that may not use this dataset.
  std::vector<BorrowerId> Uninvited(const coordination::DatasetState& dataset) const;

  // Have these bytes, which `client` put, that digest? It is computed on another thread. `done` is
  // called on the loop's, or from within; kDataLoss: they have not; kResourceExhausted: too many
  // wait for it.
  void Prove(ClientId client, std::shared_ptr<const cache::SampleBytes> bytes,
             const dataset::Digest& digest, std::function<void(Status)> done);

 private:
  Authorizer& door_;
  RefusalCounters& refusal_counters_;
  const StreamTable& streams_;
  std::map<std::string, BorrowerId> borrowers_;  // by namespace; numbered from 1
  ByteCount unproven_bytes_ = 0;                 // that wait, or are being read
  net::WorkerThread prover_;                     // last: its thread ends first
};

}  // namespace optcache::node
