#pragma once

// Where the samples come from: a folder, a web server, an object store.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/result.h"
#include "dataset/validator.h"
#include "storage/destination.h"
#include "storage/whole_sums.h"

namespace optcache::storage {

struct ObjectInfo {
  ByteCount size = 0;
  dataset::Validator validator;
};

// A store from which no byte comes for this long is not waited for any longer: the request ends.
inline constexpr Duration kSilenceMax = std::chrono::seconds(20);

// What to read and where to put it.
struct ReadRequest {
  std::string object;            // path relative to the store's root
  ByteCount offset = 0;          // of the first byte
  Destination destination;       // as many bytes are read as fit; not empty unless object_size is 0
  ByteCount object_size = 0;     // of the whole object, as the manifest says
  dataset::Validator validator;  // as the manifest says; what is unknown is not compared
  Deadline deadline;
  // Of a store on a network: how long nothing may come once it has been asked, a few seconds more
  // in the worst case. How long the whole of it takes, and how long it waits for its turn, is the
  // deadline's business.
  Duration silence_max = kSilenceMax;
  // Of a store on a network: the bytes come from the server itself, not from a cache on the way.
  // For what is read again because it was not what the manifest says.
  bool fresh = false;
  // The caller takes the bytes into a cache of its own. Of a store of files: they stay in memory no
  // second time, in the page cache, as far as this read has brought them there (file_store.h).
  bool kept = false;
  // Of a read that goes on where another one of the whole object ended, up to the object's end: the
  // `sums` of that one's outcome.
  std::optional<WholeSums> sums{};

  // Told true when the read begins to wait for another attempt, and false when that is made; from
  // any thread, never both at a time, and not after the read has ended. By retrying_store.h alone.
  std::function<void(bool waits)> on_wait{};

  ObjectInfo listed() const { return {.size = object_size, .validator = validator}; }
};

// How a read ended. When it is ok, all of the destination is filled and the object is the one that
// the manifest lists, as far as the store can tell; otherwise the destination holds anything.
//   kNotFound           the object is not there, or is no regular file
//   kConflict           it is not the one that the manifest lists: size, ETag or time differ
//   kDataLoss           fewer or more bytes came than announced, or they are not those of which
//                       the store tells the checksums
//   kUnavailable        the store cannot answer now: 5xx but 501 and 505, 429, connection refused
//                       or reset, silence
//   kDeadlineExceeded   the deadline came first
//   kPermissionDenied   not allowed to read it
//   kInvalidArgument    the store cannot do what was asked, ranges for example
//   kResourceExhausted  it was not its turn before the deadline; the store was not asked
//   kCancelled          the store was shut down
struct ReadOutcome {
  Status status;
  Duration retry_after = Duration::zero();  // with kUnavailable: how long the store asks to wait
  // With kPermissionDenied: the time of the keys is over. The next attempt has newer ones, if there
  // are any.
  bool keys_expired = false;
  Duration held_back = Duration::zero();  // how long the read waited before the store was asked
  // Of a read that failed while bytes came: how many, and how much of the destination's front they
  // fill for sure, since the answer's strong ETag is the listed one. A read of the rest may follow:
  // the store sends ranges.
  ByteCount received = 0;
  ByteCount filled = 0;
  // With `filled`, if the store has told checksums of the whole object and all of it from the first
  // byte on was asked for: the read of the rest takes them along and compares.
  std::optional<WholeSums> sums{};
  // With kDataLoss: all of the object came, but one of its checksums is not the store's.
  bool sums_differ = false;
  std::uint32_t attempts = 1;
};

// True if another attempt at what ended with this code may end well.
bool MayGetBetter(Code code);

using ReadCallback = std::move_only_function<void(ReadOutcome)>;

// Whether a store answers, as far as those know who asked it last.
struct StoreHealth {
  enum class State : std::uint8_t {
    kUntried,  // nobody has asked it, or not for a while
    kAnswers,
    kSilent,  // it is taken for gone
  };
  State state = State::kUntried;
  Duration silent_for = Duration::zero();  // kSilent: since nothing was answered
  std::string cause;                       // kSilent: why, as the last attempt had it
};

// Requests that have failed and are tried again until they succeed or patience ends.
struct StoreWaits {
  std::size_t requests = 0;
  Duration longest = Duration::zero();  // that one of them has got nothing
  std::string cause;                    // why the last attempt of that one failed

  friend bool operator==(const StoreWaits&, const StoreWaits&) = default;
};

// What may be asked of a store. 0: as much as it likes.
struct StoreRates {
  double requests_per_second = 0;
  double bytes_per_second = 0;
  friend bool operator==(const StoreRates&, const StoreRates&) = default;
};

// What was asked of a store that has limits, and whether its rates were in the way.
struct RateUse {
  StoreRates most;             // as it was opened
  StoreRates in_force;         // of these
  std::uint64_t requests = 0;  // sent so far
  ByteCount bytes = 0;         // asked for so far
  // Each rises, at every look, while reads wait for that rate and for nothing else, and it is lower
  // than the store was opened with.
  std::uint64_t held_by_requests = 0;
  std::uint64_t held_by_bytes = 0;
};

struct ListedObject {
  std::string path;
  std::optional<ObjectInfo> info;  // unset: the listing does not tell; Stat does
  bool readable = true;            // false: this process may not read it, as far as a listing tells
};

struct ObjectListing {
  std::vector<ListedObject> objects;
  std::vector<std::string> top_folders;  // names of all top-level folders, empty ones too
  // What is there, but no manifest can hold: no objects, and nobody can ask for them. Sorted.
  std::vector<std::string> unfit_keys;
};

// Called now and then from any thread with the number of objects found so far.
using ListProgress = std::function<void(std::uint64_t objects)>;

// Reads are asynchronous, dozens or hundreds at a time, and run their callback on a thread of the
// store: a callback hands the outcome on and returns; it may start another read, it may not block,
// shut down or destroy the store. List and Stat block the caller and are for indexing.
// Thread-safe.
class ObjectStore {
 public:
  ObjectStore() = default;
  ObjectStore(const ObjectStore&) = delete;
  ObjectStore& operator=(const ObjectStore&) = delete;
  virtual ~ObjectStore() = default;

  // The address without credentials, for messages.
  virtual const std::string& name() const = 0;

  // Starts a read. If the result is ok, `done` runs exactly once, on a thread of the store and
  // perhaps before this returns, at about the deadline at the latest. The destination must stay
  // valid until then, and is not written to afterwards.
  // Otherwise the read was not accepted and `done` never runs: kResourceExhausted if too many reads
  // wait already, kUnavailable if the store is taken for gone, kInvalidArgument if the request
  // contradicts itself, kCancelled after Shutdown.
  virtual Status Read(ReadRequest request, ReadCallback done) = 0;

  // Size and validator of one object: kNotFound and the like as for reads.
  virtual Result<ObjectInfo> Stat(const std::string& object, Deadline deadline) = 0;

  // Everything the store holds, in a reproducible order. kInvalidArgument if it cannot be listed.
  virtual Result<ObjectListing> List(Deadline deadline, const ListProgress& progress) = 0;

  // Ends all reads; each has called back, most with kCancelled, when this returns. Reads are
  // refused from then on. Called by the destructor; calling it again does nothing.
  virtual void Shutdown() = 0;

  virtual void VisitCounters(const CounterVisitor& visit) const = 0;

  // Of a store behind a circuit breaker (breaking_store.h); of others nobody knows.
  virtual StoreHealth Health() const { return {}; }

  // Of a store whose requests are tried again (retrying_store.h).
  virtual StoreWaits Waits() const { return {}; }

  // Of a store with limits (limiting_store.h).
  virtual RateUse Rates() { return {}; }
  // From now on at most these, and never more than it was opened with; 0: as it was opened.
  virtual void SetRates(const StoreRates& /*rates*/) {}
};

// For those who meet an object that is not the one that was indexed; ends a sentence of its own.
inline constexpr std::string_view kIndexAgain =
    "Index the dataset again: with `optcache up --reindex`, or, in a cluster, by the annotation "
    "optcache.io/reindex";

// What every store refuses: paths outside the root, a range beyond the object's end, an empty
// destination for an object that is not empty.
Status CheckReadRequest(const ReadRequest& request);

// kInvalidArgument names the first of the listing's unfit keys that `is_sample` says shall be one.
Status CheckUnfitKeys(const ObjectListing& listing,
                      const std::function<bool(std::string_view key)>& is_sample);

// "img/a.jpg bytes 0-99": how messages name what was read.
std::string Describe(const ReadRequest& request);

// kConflict says what differs if `found` is not the object that the manifest lists. Of validators,
// the parts that both sides know are compared. `what` names the object in the message.
Status CheckUnchanged(std::string_view what, const ObjectInfo& listed, const ObjectInfo& found);

// True if both are known and differ, by RFC 9110's weak comparison.
bool ETagsDiffer(std::string_view a, std::string_view b);

}  // namespace optcache::storage
