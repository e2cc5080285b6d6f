#pragma once

// A CachePlan of a cluster and its revisions, as the rollout subcommands see them.
// docs/formats/rollout.md says what each field means. What is missing is empty: an operator may not
// have written it yet.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "kube/conditions.h"
#include "kube/object.h"

namespace optcache::cli {

// Predicted or observed.
struct PlanFigures {
  std::string hit_ratio;                 // as in the status: "0.302"; empty: not known
  std::optional<ByteCount> store_bytes;  // an epoch
  std::optional<ByteCount> moved_bytes;  // an epoch
  friend bool operator==(const PlanFigures&, const PlanFigures&) = default;
};

struct PlanJob {
  std::string name;
  std::uint64_t pass = 0;
  std::uint64_t position = 0;
  std::uint64_t length = 0;  // of the pass, as `position`; 0: not known
  std::uint64_t ranks = 0;
  std::string rate;
  bool planned = false;
  // It has begun no other pass since those were marked that the rollout waits for.
  bool is_awaited = true;
  friend bool operator==(const PlanJob&, const PlanJob&) = default;
};

struct PlanFailure {
  std::string revision;  // hash
  std::string reason;
  std::string message;
  friend bool operator==(const PlanFailure&, const PlanFailure&) = default;
};

// An answer to the annotation optcache.io/predict.
struct Prediction {
  std::string id;
  std::string error;
  PlanFigures asked;
  PlanFigures current;
  std::string current_error;  // why there are no figures of that one
  bool worse = false;         // its rollout would wait for spec.rollout.acknowledge
  struct Node {
    std::string name;
    ByteCount store_bytes = 0;
    ByteCount moved_bytes = 0;
    friend bool operator==(const Node&, const Node&) = default;
  };
  std::vector<Node> nodes;
  friend bool operator==(const Prediction&, const Prediction&) = default;
};

struct PlanResource {
  std::string name_space;
  std::string name;
  std::string dataset;
  kube::Json content;  // ContentOf its spec
  bool paused = false;
  bool acknowledge = false;
  std::string restarted_at;  // of the spec
  std::string change_cause;  // annotation; empty: none
  std::string predict;       // annotation; empty: none
  std::int64_t generation = 0;
  std::int64_t observed_generation = 0;
  std::string current;  // names of ControllerRevisions
  std::string update;
  std::string digest;
  std::string phase;
  std::string phase_revision;  // hash: whose phase that is
  std::optional<PlanFailure> failed;
  std::uint64_t desired = 0;  // nodes
  std::uint64_t prepared = 0;
  std::uint64_t active = 0;
  PlanFigures predicted;  // of the passes that are observed
  PlanFigures observed;
  // Of the update, and of the revision in force from the same inputs.
  PlanFigures update_predicted;
  PlanFigures present_predicted;
  std::string observed_since;
  std::uint64_t observed_passes = 0;
  std::uint64_t wanted_passes = 1;   // spec.rollout.abort.after
  bool uncompared = false;           // with the revision before, in Complete
  std::uint64_t marked_streams = 0;  // whose passes are waited for
  std::uint64_t marked_passes = 0;   // counted of them
  std::vector<PlanJob> jobs;
  kube::Condition available;
  kube::Condition progressing;
  kube::Condition degraded;
  std::optional<Prediction> prediction;

  // "cacheplan.optcache.io/imagenet", as kubectl names what it changes.
  std::string Reference() const;
  // In a phase that a pause holds, as the absence of all nodes does.
  bool MayBeHeld() const;
};

// A ControllerRevision.
struct PlanRevision {
  std::uint64_t number = 0;
  std::string name;
  std::string created;       // RFC 3339
  std::string change_cause;  // empty: none
  kube::Json content;

  // What nodes call it: the end of its name.
  std::string Hash() const;
};

// What a revision is made of, {jobs, objective, retention}, of a spec or of a part of one: all
// defaults written out, jobs by name.
kube::Json ContentOf(const kube::Json& spec);

// kInvalidArgument: not a CachePlan.
Result<PlanResource> ReadPlanResource(std::string_view json);
Result<PlanResource> PlanResourceOf(const kube::Json& object);
// Of a List of ControllerRevisions, ascending by number. kInvalidArgument: it is none.
Result<std::vector<PlanRevision>> ReadPlanRevisions(std::string_view json);

// "93be01d7ac" of "imagenet-93be01d7ac".
std::string HashOfRevision(std::string_view name);
// The revision whose name ends with that hash; null: there is none.
const PlanRevision* FindRevision(const std::vector<PlanRevision>& revisions, std::string_view hash);
// "revision 3 (5f0c9a1b22)", or "revision 5f0c9a1b22" if its number is not known.
std::string DescribeRevision(const std::vector<PlanRevision>& revisions, std::string_view hash);

// For scripts; what is not known is left out.
nlohmann::ordered_json FiguresAsJson(const PlanFigures& figures);
// "42 %" of its pass; empty: not known.
std::string ShareOfPass(const PlanJob& job);
// "1.50 GiB", or "-".
std::string BytesText(const std::optional<ByteCount>& bytes);

}  // namespace optcache::cli
