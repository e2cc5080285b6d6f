#pragma once

// What nodes and the coordinator tell each other: reports and inventories go in, the desired state
// comes out. Plain values; as JSON: coordination/codec.h; over HTTP: docs/formats/control.md.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/enumerations.h"
#include "api/limits.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "coordination/rate_shares.h"
#include "coordination/savings.h"
#include "sampler/id_list.h"

namespace optcache::coordination {

using MemberId = std::uint32_t;       // of one run of one node; never given twice; 0: none
using DatasetKey = std::uint64_t;     // dataset::KeyOf
using RequestNumber = std::uint64_t;  // of a request for inventories; 0: none

using api::kMaxJobsOfPlan;

// Limits of what is parsed. What is larger is refused with kInvalidArgument.
inline constexpr std::size_t kMaxMembers = 4096;
inline constexpr std::size_t kMaxDatasets = 256;
// Manifests of one Dataset that jobs still read though it has another by now.
inline constexpr std::size_t kMaxRetiringOfDataset = 2;
inline constexpr std::size_t kMaxRetiring = kMaxDatasets * kMaxRetiringOfDataset;
inline constexpr std::size_t kMaxStreams = 1024;
inline constexpr std::size_t kMaxManifests = 1024;  // that one node holds
inline constexpr std::size_t kMaxNamespaces = 256;  // that may use one dataset
inline constexpr std::size_t kMaxTraces = 8;  // of one rank or stream: passes whose lists are known
inline constexpr std::size_t kMaxTracesWanted = 16;  // at once, of one node
inline constexpr std::uint32_t kMaxWorld = 1U << 16;
// Of all streams together: a state names the node of each rank.
inline constexpr std::size_t kMaxRanksOfDataset = 1U << 17;
inline constexpr std::size_t kMaxRanks = 1U << 20;
inline constexpr std::size_t kMaxNameBytes = 1024;
inline constexpr std::size_t kMaxReportBytes = 8U << 20;      // JSON text
inline constexpr std::size_t kMaxStateBytes = 64U << 20;      // JSON text
inline constexpr std::size_t kMaxInventoryBytes = 32U << 20;  // JSON text
inline constexpr std::size_t kMaxBaseBytes = 64U << 20;
inline constexpr std::size_t kMaxTraceBytes = sampler::kMaxRankListBytes;
inline constexpr std::size_t kMaxTraceBytesInAll = 256U << 20;  // that a coordinator keeps
inline constexpr std::size_t kMaxCauseBytes = 512;
inline constexpr std::uint64_t kMaxSilentMs = 30ULL * 24 * 3600 * 1000;
inline constexpr std::size_t kMaxTrials = 4;       // of one dataset at a time
inline constexpr std::size_t kPassesReported = 3;  // of one stream: the latest
inline constexpr std::size_t kMaxPassReports = kPassesReported * kMaxStreams;

// Of a desired state. Totally ordered; a node refuses one that is not higher than its own.
struct Version {
  std::uint32_t term = 0;  // lease transitions of the coordinator; 0 on one machine
  std::uint64_t counter = 0;
  friend auto operator<=>(const Version&, const Version&) = default;
};

// A place in a stream: the read of `position` in `pass`.
struct Cut {
  PassNumber pass = 0;
  Position position = 0;
  friend auto operator<=>(const Cut&, const Cut&) = default;
};

// How a stream's order is made; the fields of wire::StreamAttach.
struct Recipe {
  std::uint8_t sampler_kind = 0;  // sampler/order_source.h
  std::uint64_t size = 0;         // samples
  std::int64_t seed = 0;
  std::uint32_t world = 1;
  bool shuffle = true;
  bool drop_last = false;
  bool modern_randperm = true;
  std::uint8_t base_seed = 0;
  bool tail_permutation = true;
  bool known = true;         // false: the order cannot be replayed
  std::uint32_t passes = 0;  // the stream ends before this pass; 0: nobody knows
  // The recipe as text (sampler/recipe_text.h), where the fields above cannot say it; of those only
  // `world`, `known` and `passes` count then. Empty: they say it.
  std::string order{};
  friend bool operator==(const Recipe&, const Recipe&) = default;
};

// A pass whose list of ids the training process has handed over (docs/formats/list.md).
struct PassTrace {
  PassNumber pass = 0;
  std::uint64_t length = 0;  // of a rank: ids; of a stream: positions
  std::string digest;        // hex, of the list's bytes
  friend bool operator==(const PassTrace&, const PassTrace&) = default;
};

// --- Reports: node -> coordinator ---------------------------------------------------------------

// A rank that reads through this node. Listed while its sidecar is connected: that is the rank's
// heartbeat. `ended` ranks are listed for a minute, then dropped.
struct RankReport {
  Rank rank = 0;
  Recipe recipe;         // as this rank announced it
  bool started = false;  // it has begun a pass: the fields below mean something
  PassNumber pass = 0;
  std::uint64_t epoch = 0;        // what the sampler's seed of `pass` is made of
  Position start = 0;             // first position of the pass that the rank reads
  Position position = 0;          // reads before it have been handed to the trainer
  Position last_pass_end = 0;     // where the pass before this one ended; 0: not known
  std::uint64_t wait_us = 0;      // how long the trainer has waited in this pass
  bool order_known = true;        // what is asked for is what was predicted
  bool ended = false;             // the rank has detached
  std::vector<PassTrace> traces;  // ascending: its lists that are here, if it has no recipe
  std::uint64_t pass_reads = 0;   // of its list's ids in each pass, wire::StreamPassEnd; 0: all
  friend bool operator==(const RankReport&, const RankReport&) = default;
};

struct StreamReport {
  StreamId id = 0;
  std::string name;  // "namespace/owner/dataset/loader"
  std::uint32_t incarnation = 0;
  std::string dataset;  // "namespace/name"
  DatasetKey dataset_key = 0;
  std::vector<RankReport> ranks;
  friend bool operator==(const StreamReport&, const StreamReport&) = default;
};

// What was read in one pass of one stream, through one node by its ranks or through all of them,
// and what the plan had predicted of those same reads. A read that went past the node is in none of
// it.
struct PassReport {
  StreamId stream = 0;
  PassNumber pass = 0;
  std::uint64_t hits = 0;       // from the node's own memory
  std::uint64_t peer_hits = 0;  // from another node's memory
  std::uint64_t misses = 0;
  ByteCount miss_bytes = 0;
  ByteCount moved_bytes = 0;         // pushed to other nodes after reads of this pass
  std::uint64_t planned_reads = 0;   // of the whole pass, once a plan covers it
  std::uint64_t planned_misses = 0;  // of those
  ByteCount planned_miss_bytes = 0;
  ByteCount planned_moved_bytes = 0;
  friend bool operator==(const PassReport&, const PassReport&) = default;
};

// What an epoch is predicted to be: one pass of every stream.
struct Forecast {
  std::uint64_t reads = 0;
  std::uint64_t store_reads = 0;
  ByteCount read_bytes = 0;
  ByteCount store_bytes = 0;
  ByteCount moved_bytes = 0;
  friend bool operator==(const Forecast&, const Forecast&) = default;
};

// What came of TrialState. Of equal `planned` all nodes have the same digest and forecast.
struct TrialReport {
  std::string id;
  Version planned;     // whose inputs it was derived from
  std::string digest;  // hex, of what was derived
  std::string error;   // why nothing could be; empty: the rest counts
  Forecast all;        // of all nodes
  Forecast own;        // reads by the ranks of the node that reports
  friend bool operator==(const TrialReport&, const TrialReport&) = default;
};

// Whether the dataset's store answers the sidecars of a node, as those know that have asked it.
struct StoreReport {
  std::uint32_t answering = 0;  // sidecars that it answers
  std::uint32_t silent = 0;     // to which it answers nothing: they take it for gone
  std::uint64_t silent_ms = 0;  // for how long, to whom for the longest
  std::string cause;            // that one's last: one line of text, bounded
  std::string changed;          // an object that is not the one that was indexed, met lately
  friend bool operator==(const StoreReport&, const StoreReport&) = default;
};

// What a node says of one dataset. Counters count since the node started.
struct DatasetReport {
  std::string name;
  std::string plan;               // newest pass planned: version, stream, pass; empty: none
  std::string plan_digest;        // of that pass, hex
  ByteCount used_bytes = 0;       // in memory and on disk
  ByteCount disk_used_bytes = 0;  // of these, on disk
  std::uint64_t samples = 0;      // held now
  std::uint64_t hits = 0;         // answered from this node's memory
  std::uint64_t peer_hits = 0;    // answered from another node's memory
  std::uint64_t misses = 0;       // left to the store
  ByteCount miss_bytes = 0;
  std::uint64_t moves = 0;  // pushed to other nodes
  ByteCount moved_bytes = 0;
  std::uint64_t planned_misses = 0;  // reads of the store that the plan predicted up to now
  std::uint64_t covered_reads = 0;   // hits and misses whose outcome a plan had predicted
  std::uint64_t covered_hits = 0;    // of those, as they were answered
  double predicted_hit_ratio = 0;    // of the plan in force, 0 to 1
  std::string manifest_digest;       // hex; empty: of an older node, the present one
  std::uint64_t total_samples = 0;   // that the manifest lists
  ByteCount total_bytes = 0;
  std::string revision;             // that it follows; empty: of no name
  Version derived;                  // `planned` of the newest plan that it has derived, or need not
  std::vector<PassReport> passes;   // kPassesReported a stream, by stream and pass
  std::vector<TrialReport> trials;  // of those that the state asks for
  StoreReport store;
  friend bool operator==(const DatasetReport&, const DatasetReport&) = default;
};

// What the sidecars of a node have saved of each Dataset since its batch before. A node keeps a
// batch until a report with it is answered, and sends it again: the number tells that it is the
// same.
struct SavingsBatch {
  std::uint64_t number = 0;  // rises by one; 0: none
  std::vector<DatasetSavings> datasets;
  friend bool operator==(const SavingsBatch&, const SavingsBatch&) = default;
};

// What the sidecars of a node want of a Dataset's store, as far as they have limits.
struct DatasetDemand {
  std::string dataset;
  RateDemand requests;
  RateDemand bytes;
  friend bool operator==(const DatasetDemand&, const DatasetDemand&) = default;
};

struct Report {
  std::string node;
  std::uint64_t incarnation = 0;       // rises with each start of the node's process
  std::string address;                 // where other nodes reach it: host:port or unix:/path
  std::string metrics;                 // URL of its /metrics; empty: none
  ByteCount capacity = 0;              // payload bytes it offers in memory
  ByteCount disk = 0;                  // and on its disk
  bool leaving = false;                // it is about to end, and gives what it holds to others
  MemberId member = 0;                 // the id it has been given; 0: none yet
  Version applied;                     // the desired state in force there
  std::string manifest_url;            // where others fetch its manifests; empty: nowhere
  std::vector<std::string> manifests;  // digests (hex) that it keeps on its state volume
  std::vector<DatasetReport> datasets;
  std::vector<DatasetReport> retiring;
  std::vector<StreamReport> streams;
  SavingsBatch savings;
  std::vector<DatasetDemand> demands;
  friend bool operator==(const Report&, const Report&) = default;
};

// What the sidecars of a node together may ask of a Dataset's store in a second. 0: it has no such
// limit.
struct DatasetShare {
  std::string dataset;
  double requests = 0;
  double bytes = 0;
  friend bool operator==(const DatasetShare&, const DatasetShare&) = default;
};

// What the coordinator says to a report.
struct ReportAnswer {
  MemberId member = 0;                     // the id of the node that reports
  Version version;                         // of the present state
  std::vector<std::string> traces_wanted;  // digests of lists that the report names, to be sent
  std::vector<DatasetShare> shares;        // of `demands`; of one that is not here: as before
  friend bool operator==(const ReportAnswer&, const ReportAnswer&) = default;
};

// --- Inventories: node -> coordinator, on request -----------------------------------------------

// Up to where a node has decided for a rank: what lies before has been handed over.
struct RankPosition {
  StreamId stream = 0;
  Rank rank = 0;
  Cut next;
  bool planned = false;  // the node has a plan that decides there
  friend bool operator==(const RankPosition&, const RankPosition&) = default;
};

// What one node holds of one dataset, without samples that no plan has decided about yet.
struct Inventory {
  std::string node;
  std::uint64_t incarnation = 0;
  std::string dataset;
  RequestNumber request = 0;
  std::vector<SampleId> ids;  // ascending, each once
  std::vector<RankPosition> positions;
  friend bool operator==(const Inventory&, const Inventory&) = default;
};

// --- Desired state: coordinator -> nodes --------------------------------------------------------

struct Member {
  MemberId id = 0;
  std::string name;
  std::string address;
  ByteCount capacity = 0;    // in memory; one that is leaving offers none
  ByteCount disk = 0;        // on its disk
  std::string manifest_url;  // empty: it gives no manifests to others
  bool leaving = false;      // it has a share of nothing, and is no sample's home
  friend bool operator==(const Member&, const Member&) = default;
};

using api::Retention;
using plan::Objective;

struct MemberCapacity {
  MemberId member = 0;
  ByteCount bytes = 0;
  ByteCount disk = 0;    // this many of them on the member's disk, the others in its memory
  bool departs = false;  // the dataset is placed there no more: it gives away what it holds
  friend bool operator==(const MemberCapacity&, const MemberCapacity&) = default;
};

// A stream that nodes should know. While `complete` is false its ranks are still arriving, it is in
// no plan, and its samples stay with their reader.
struct StreamState {
  StreamId id = 0;
  std::string name;
  std::uint32_t incarnation = 0;
  Recipe recipe;
  std::uint32_t rate_permille = 1000;  // of the fastest stream of the dataset
  std::vector<MemberId> node_of_rank;  // `world` of them; 0: that rank reads through no node now
  bool complete = false;
  std::string conflict;  // what its ranks disagree on, with both values; empty: nothing
  // Pass p is epoch first_epoch + epoch_step * (p - first_pass), from first_pass on.
  PassNumber first_pass = 0;
  std::uint64_t first_epoch = 0;
  std::uint32_t epoch_step = 1;  // 0: set_epoch is forgotten, every pass has the same order
  Cut cut;                       // the plan decides from here on
  // Ascending without a gap: the lists of these passes, GET /v1/traces/<digest>, where there is no
  // recipe. Nobody knows yet what comes after them.
  std::vector<PassTrace> traces;
  // Passes are taken to end at this position: all ranks have said so, or ended there twice. 0: with
  // the order.
  Position stops_at = 0;
  // Greater than that of an earlier generation of the stream, whose processes were started again.
  // 0.0: the coordinator first heard of the stream in its first 30 seconds, and knows of no earlier
  // generation.
  Version generation;
  friend bool operator==(const StreamState&, const StreamState&) = default;
};

// Are its reads known ahead, in some pass at least? Only then is it planned.
inline bool HasOrder(const StreamState& stream) {
  return stream.recipe.known || !stream.traces.empty();
}

// Of a stream: what its order is taken to be.
struct StreamRecipe {
  StreamId stream = 0;
  Recipe recipe;
  friend bool operator==(const StreamRecipe&, const StreamRecipe&) = default;
};

// What a revision of a CachePlan asks for (docs/formats/rollout.md).
struct RevisionState {
  std::string name;
  Retention retention = Retention::kOptimal;
  Objective objective = Objective::kBytes;
  std::vector<StreamRecipe> recipes;  // where they differ from the dataset's streams, by stream
  friend bool operator==(const RevisionState&, const RevisionState&) = default;
};

// Members that follow another revision than the dataset's own.
struct UpdateState {
  RevisionState revision;
  std::vector<MemberId> members;  // ascending
  friend bool operator==(const UpdateState&, const UpdateState&) = default;
};

// A revision that members derive beside what they follow, to say what would come of it.
struct TrialState {
  std::string id;
  RevisionState revision;
  std::vector<StreamState> expected;  // jobs that do not read yet: complete, by id
  friend bool operator==(const TrialState&, const TrialState&) = default;
};

// The plan's inputs. Those of the plan (objective, capacities, complete streams, base) change only
// together with `planned`, so a node that starts late derives the same plan as the others.
struct DatasetState {
  std::string name;
  std::string manifest_digest;  // hex
  DatasetKey key = 0;
  std::string revision;  // empty: of no name
  Retention retention = Retention::kOptimal;
  Objective objective = Objective::kBytes;
  std::optional<UpdateState> update;
  std::vector<TrialState> trials;          // at most kMaxTrials
  Version planned;                         // when the plan's inputs were fixed; zero: no plan yet
  std::string base_digest;                 // hex, GET /v1/base/<digest>; empty: nothing held
  std::vector<MemberCapacity> capacities;  // ascending by member
  std::vector<StreamState> streams;        // ascending by id
  RequestNumber inventory_wanted = 0;
  std::vector<std::string> namespaces;     // whose pods may use it; empty: on one machine, all
  std::vector<MemberId> manifest_members;  // who shall hold the manifest, ascending
  std::vector<MemberId> manifest_holders;  // some who do and can be asked for it, ascending
  friend bool operator==(const DatasetState&, const DatasetState&) = default;
};

struct DesiredState {
  Version version;
  std::vector<Member> members;         // ascending by id
  std::vector<DatasetState> datasets;  // ascending by name
  // Of the same names with the manifests that they had before, which streams that began with them
  // read to their end. Ascending by name and digest.
  std::vector<DatasetState> retiring;
  friend bool operator==(const DesiredState&, const DesiredState&) = default;
};

}  // namespace optcache::coordination
