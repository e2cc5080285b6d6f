#pragma once

// What the core of the sidecar needs of the outside. The agent binds these to sockets, stores and
// threads; tests bind them to fakes. All calls, and all calls back, are on the event loop's thread,
// and a call back never comes from within the call that asked for it.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "dataset/store_price.h"
#include "sampler/recipe.h"
#include "sidecar/ports/sample_memory.h"
#include "wire/messages.h"

namespace optcache::sidecar {

// Where a sample's bytes lie in an object that holds others, too.
struct StorePlace {
  std::uint32_t object = 0;
  ByteCount begin = 0;
  ByteCount end = 0;  // above begin
  friend auto operator<=>(const StorePlace&, const StorePlace&) = default;
};

// One dataset, as its manifest describes it. Lives as long as the sidecar.
class DatasetPort {
 public:
  virtual ~DatasetPort() = default;
  virtual const std::string& name() const = 0;
  virtual wire::DatasetKey key() const = 0;
  virtual SampleId samples() const = 0;
  virtual ByteCount SizeOf(SampleId id) const = 0;
  // Nothing: the sample is an object of its own, or empty.
  virtual std::optional<StorePlace> PlaceOf(SampleId /*id*/) const { return std::nullopt; }
  // What its store takes, as far as the user has said.
  virtual dataset::StorePrice price() const { return {}; }
  // How much a read of this sample alone asks the store for. Nothing: it needs no request.
  virtual std::optional<ByteCount> StoreBytesOf(SampleId id) const { return SizeOf(id); }
};

// What passes between the sidecar and its node, on the connection that is open.
struct NodeTraffic {
  std::uint64_t received = 0;  // bytes so far, of a message that has not ended, too
  ByteCount queued = 0;        // that wait to be sent
  std::size_t queued_messages = 0;
  friend bool operator==(const NodeTraffic&, const NodeTraffic&) = default;
};

// The node of this machine, which may be gone at any time. Its answers go to a NodeListener.
class NodePort {
 public:
  virtual ~NodePort() = default;
  virtual bool connected() const = 0;
  virtual void Send(std::uint32_t request, const wire::Message& message) = 0;
  // Holds the payload until it is written or the connection is lost.
  virtual void Put(const wire::Put& put, BufferRef payload) = 0;
  // Gives up the connection; OnNodeLost follows. It comes back in the background.
  virtual void Drop(Status why) = 0;
  // Nothing while there is no connection.
  virtual NodeTraffic traffic() const { return {}; }
};

// Who hears what the node says.
class NodeListener {
 public:
  virtual ~NodeListener() = default;
  virtual void OnNodeUp() = 0;
  virtual void OnNodeLost() = 0;
  // An answer without payload.
  virtual void OnAnswer(std::uint32_t request, const wire::SampleReply& reply) = 0;
  // A payload of `length` begins: where it goes, null if nowhere.
  virtual BufferRef OnPayloadStart(std::uint32_t request, const wire::SampleReply& reply,
                                   ByteCount length) = 0;
  // It has arrived (ok), is damaged (kDataLoss), or was thrown away.
  virtual void OnPayload(std::uint32_t request, const wire::SampleReply& reply,
                         const Status& status) = 0;
  // What became of a Put.
  virtual void OnStored(const wire::StoreReply& /*reply*/) {}
  // What may be asked of a store from now on.
  virtual void OnShare(const wire::StoreShare& /*share*/) {}
};

// Of a store, in a second. 0: no limit.
struct StoreRate {
  double requests = 0;
  double bytes = 0;
  friend bool operator==(const StoreRate&, const StoreRate&) = default;
};

// What was asked so far of the store of a dataset.
struct StoreUse {
  wire::DatasetKey dataset = 0;
  StoreRate most;  // that this process may ask
  std::uint64_t requests = 0;
  ByteCount bytes = 0;
  // Each rises, at every look, while reads wait for that rate and for nothing else, and it is lower
  // than `most`.
  std::uint64_t held_by_requests = 0;
  std::uint64_t held_by_bytes = 0;
};

// The object stores behind the datasets.
class StorePort {
 public:
  virtual ~StorePort() = default;
  // The sample's CRC-32C, or an error that names object, range and cause.
  using Done = std::function<void(Result<std::uint32_t> crc)>;
  // Told true when a read begins to wait until the store may be asked again, and false when it is.
  using OnWait = std::function<void(bool waits)>;

  struct Part {
    SampleId id = 0;
    BufferRef into;
    Done done;
    bool keep = false;  // a node takes it into its memory: see storage::ReadRequest::kept
  };
  // Reads the whole sample into `into` and checks what can be checked. Ends within a deadline.
  virtual void Read(const DatasetPort& dataset, Part part, OnWait on_wait) = 0;
  // The same for several samples of one object, by rising places that do not overlap, by one read
  // of all that lies from the first to the last. Each is told of its own end.
  virtual void ReadTogether(const DatasetPort& dataset, std::vector<Part> parts,
                            OnWait on_wait) = 0;

  // The bytes of that dataset that have come so far, of reads that have not ended, too. 0: that is
  // not known.
  virtual ByteCount Arrived(const DatasetPort& dataset) const = 0;

  // The requests that were sent to the store of that dataset so far. 0: that is not known.
  virtual std::uint64_t Requests(const DatasetPort& /*dataset*/) const { return 0; }

  // What of the stores is waited for, in words: "the store of a/b, for 31 s by 32 requests: …".
  virtual std::vector<std::string> Waits() const { return {}; }

  // Of each dataset, whether its store answers.
  virtual std::vector<wire::StoreHealth> Health() const { return {}; }

  // Of each dataset, what of its store was used.
  virtual std::vector<StoreUse> Uses() const { return {}; }
  // From now on at most this, and never more than StoreUse::most; 0: that.
  virtual void SetRates(wire::DatasetKey /*dataset*/, const StoreRate& /*rates*/) {}
};

// What a rank reads in one pass.
struct RankPass {
  std::vector<SampleId> ids;
  std::vector<std::uint32_t> by_id;  // indices into ids, by (id, index)
  std::uint32_t crc = 0;             // sampler::OrderCrc of the part that was asked for
};
// Which pass of which rank; the CRC is of the ids from `begin` to before `end`.
struct RankPassRequest {
  // The rank's list itself, if it was handed over: then there is no recipe. Const, shared with the
  // thread that looks at it.
  std::shared_ptr<const std::vector<SampleId>> trace{};
  sampler::Recipe recipe;
  std::uint64_t epoch = 0;
  Rank rank = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Replays orders, which takes up to a second for the largest datasets.
class OrderPort {
 public:
  virtual ~OrderPort() = default;
  // Shared with the thread that made it.
  using Done = std::function<void(Result<std::shared_ptr<const RankPass>>)>;
  // Asked for one order at a time by each rank: so what waits is bounded by their number.
  virtual void Replay(const RankPassRequest& request, Done done) = 0;
};

// A connection of a training process; never used twice.
using ClientId = std::uint64_t;
// An answered batch whose slots a client holds; 0: it holds none.
using BatchId = std::uint64_t;

// One sample of an answer: its bytes in the arena or by copy, or why there are none.
struct Served {
  Status status;
  BufferRef buffer;
  bool stand_in = false;  // the bytes of another sample, in the arena
};

// The training processes.
class ClientPort {
 public:
  virtual ~ClientPort() = default;
  // Answers one request, once. The client gives the slots back by releasing `batch`. Bytes outside
  // the arena are copied before the call returns.
  virtual void Reply(ClientId client, std::uint64_t request, BatchId batch,
                     const std::vector<Served>& samples) = 0;
  // Answers one request with an error for the whole of it.
  virtual void Refuse(ClientId client, std::uint64_t request, const Status& why) = 0;
};

}  // namespace optcache::sidecar
