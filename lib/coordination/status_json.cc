// Writes and reads the status of a cluster as JSON, by a pair of functions for each value.
//
// Encode and Read of one value name the same fields. Values that reports carry too have theirs in
// internal/json_values.h. Reading ignores fields that it does not know and keeps the default of
// those that are missing, so that a command line can show a coordinator of another version. The
// first error is kept in JsonErrors with the path of its field, and ends the loops; so no step
// looks at errors itself.

#include <utility>

#include "coordination/internal/json_values.h"
#include "coordination/status.h"
#include "sampler/recipe_text.h"

namespace optcache::coordination {
namespace {

using internal::Array;
using internal::Encode;
using internal::Json;
using internal::JsonErrors;
using internal::JsonObject;
using internal::Read;

constexpr std::size_t kMaxNotes = 64;

Json Encode(const MemberStatus& member) {
  return {{"id", member.id},
          {"incarnation", member.incarnation},
          {"name", member.name},
          {"address", member.address},
          {"metrics", member.metrics},
          {"capacity", member.capacity},
          {"disk", member.disk},
          {"used", member.used},
          {"disk_used", member.disk_used},
          {"silent_seconds", member.silent_seconds},
          {"applied", FormatVersion(member.applied)}};
}

Json Encode(const SidecarStatus& sidecar) {
  return {{"name", sidecar.name}, {"socket", sidecar.socket}, {"metrics", sidecar.metrics}};
}

Json Encode(const StreamStatus& stream) {
  return {{"name", stream.name},
          {"incarnation", stream.incarnation},
          {"pass", stream.pass},
          {"position", stream.position},
          {"length", stream.length},
          {"world", stream.world},
          {"ranks", stream.ranks},
          {"ranks_lost", stream.ranks_lost},
          {"planned", stream.planned},
          {"order_known", stream.order_known},
          {"recipe", stream.recipe},
          {"epoch", stream.epoch},
          {"epoch_step", stream.epoch_step},
          {"repeats", stream.repeats},
          {"rate", stream.rate},
          {"conflict", stream.conflict},
          {"differs", stream.differs}};
}

Json Encode(const NodeShare& node) {
  Json json = {{"name", node.name}, {"used", node.used}};
  if (!node.revision.empty()) json["revision"] = node.revision;
  if (node.derived != Version{}) json["derived"] = FormatVersion(node.derived);
  if (!node.trials.empty())
    json["trials"] = Array(node.trials, [](const TrialReport& trial) { return Encode(trial); });
  return json;
}

Json Encode(const PassStatus& pass) {
  Json json = Encode(pass.sum);
  json["name"] = pass.stream;
  json["length"] = pass.length;
  json["complete"] = pass.complete;
  return json;
}

Json Encode(const StoreStatus& store) {
  Json json = {{"answering", store.answering},
               {"silent", store.silent},
               {"members_silent", store.members_silent},
               {"silent_seconds", store.silent_seconds},
               {"cause", store.cause}};
  if (!store.changed.empty()) json["changed"] = store.changed;
  if (store.quiet_seconds) json["quiet_seconds"] = *store.quiet_seconds;
  return json;
}

Json RatioOrNull(std::optional<double> ratio) {
  return ratio ? Json(*ratio) : Json(nullptr);
}

Json Encode(const DatasetStatus& dataset) {
  return {{"name", dataset.name},
          {"manifest", dataset.manifest_digest},
          {"retention", RetentionName(dataset.retention)},
          {"objective", ObjectiveName(dataset.objective)},
          {"total_samples", dataset.total_samples},
          {"total_bytes", dataset.total_bytes},
          {"capacity", dataset.capacity},
          {"planned", FormatVersion(dataset.planned)},
          {"plan_digest", dataset.plan_digest},
          {"nodes_that_differ", dataset.nodes_that_differ},
          {"replanning", dataset.replanning},
          {"observed_hit_ratio", RatioOrNull(dataset.ratios.observed)},
          {"predicted_hit_ratio", RatioOrNull(dataset.ratios.predicted)},
          {"sum", Encode(dataset.sum)},
          {"saved", Encode(dataset.saved)},
          {"streams", Array(dataset.streams, [](const StreamStatus& s) { return Encode(s); })},
          {"notes", dataset.notes},
          {"nodes", Array(dataset.nodes, [](const NodeShare& node) { return Encode(node); })},
          {"readers", dataset.readers},
          {"manifest_holders", dataset.manifest_holders},
          {"manifest_missed_seconds", dataset.manifest_missed_seconds},
          {"revision", dataset.revision},
          {"update_revision", dataset.update_revision},
          {"passes", Array(dataset.passes, [](const PassStatus& pass) { return Encode(pass); })},
          {"store", Encode(dataset.store)}};
}

void Read(JsonObject object, MemberStatus& member) {
  object.Read("id", member.id);
  object.Read("incarnation", member.incarnation);
  object.Need("name", member.name, kMaxNameBytes);
  object.Read("address", member.address, kMaxNameBytes);
  object.Read("metrics", member.metrics, kMaxNameBytes);
  object.Read("capacity", member.capacity);
  object.Read("disk", member.disk);
  object.Read("used", member.used);
  object.Read("disk_used", member.disk_used);
  object.Read("silent_seconds", member.silent_seconds);
  Read(object, "applied", member.applied);
}

void Read(JsonObject object, SidecarStatus& sidecar) {
  object.Need("name", sidecar.name, kMaxNameBytes);
  object.Read("socket", sidecar.socket, kMaxNameBytes);
  object.Read("metrics", sidecar.metrics, kMaxNameBytes);
}

void Read(JsonObject object, StreamStatus& stream) {
  object.Need("name", stream.name, kMaxNameBytes);
  object.Read("incarnation", stream.incarnation);
  object.Read("pass", stream.pass);
  object.Read("position", stream.position);
  object.Read("length", stream.length);
  object.Read("world", stream.world);
  object.Read("ranks", stream.ranks);
  object.Read("ranks_lost", stream.ranks_lost);
  object.Read("planned", stream.planned);
  object.Read("order_known", stream.order_known);
  object.Read("recipe", stream.recipe, sampler::kMaxRecipeBytes);
  object.Read("epoch", stream.epoch);
  object.Read("epoch_step", stream.epoch_step);
  object.Read("repeats", stream.repeats);
  object.Read("rate", stream.rate);
  object.Read("conflict", stream.conflict, kMaxNameBytes);
  object.Read("differs", stream.differs, kMaxNameBytes);
}

void Read(JsonObject object, NodeShare& node) {
  object.Need("name", node.name, kMaxNameBytes);
  object.Read("used", node.used);
  object.Read("revision", node.revision, kMaxNameBytes);
  Read(object, "derived", node.derived);
  object.ForEach("trials", kMaxTrials,
                 [&](JsonObject item) { Read(std::move(item), node.trials.emplace_back()); });
}

void Read(JsonObject object, PassStatus& pass) {
  object.Need("name", pass.stream, kMaxNameBytes);
  object.Read("length", pass.length);
  object.Read("complete", pass.complete);
  Read(object, pass.sum);
}

void Read(JsonObject object, StoreStatus& store) {
  object.Read("answering", store.answering);
  object.Read("silent", store.silent);
  object.Read("members_silent", store.members_silent);
  object.Read("silent_seconds", store.silent_seconds);
  object.Read("cause", store.cause, kMaxCauseBytes);
  object.Read("changed", store.changed, kMaxCauseBytes);
  double quiet = -1;
  object.Read("quiet_seconds", quiet);
  if (quiet >= 0) store.quiet_seconds = quiet;
}

void Read(JsonObject object, DatasetStatus& dataset) {
  object.Need("name", dataset.name, kMaxNameBytes);
  object.Read("manifest", dataset.manifest_digest, kMaxNameBytes);
  Read(object, "retention", dataset.retention);
  Read(object, "objective", dataset.objective);
  object.Read("total_samples", dataset.total_samples);
  object.Read("total_bytes", dataset.total_bytes);
  object.Read("capacity", dataset.capacity);
  Read(object, "planned", dataset.planned);
  object.Read("plan_digest", dataset.plan_digest, kMaxNameBytes);
  object.Read("nodes_that_differ", kMaxMembers, dataset.nodes_that_differ);
  object.Read("replanning", dataset.replanning);
  object.Read("observed_hit_ratio", dataset.ratios.observed);
  object.Read("predicted_hit_ratio", dataset.ratios.predicted);
  dataset.sum.name = dataset.name;  // also if there is no sum
  object.In("sum", [&](JsonObject sum) { Read(std::move(sum), dataset.sum); });
  object.In("saved", [&](JsonObject saved) { Read(saved, dataset.saved); });
  object.ForEach("streams", kMaxStreams,
                 [&](JsonObject item) { Read(std::move(item), dataset.streams.emplace_back()); });
  object.Read("notes", kMaxNotes, dataset.notes);
  object.ForEach("nodes", kMaxMembers,
                 [&](JsonObject item) { Read(std::move(item), dataset.nodes.emplace_back()); });
  object.Read("readers", kMaxMembers, dataset.readers);
  object.Read("manifest_holders", dataset.manifest_holders);
  object.Read("manifest_missed_seconds", dataset.manifest_missed_seconds);
  object.Read("revision", dataset.revision, kMaxNameBytes);
  object.Read("update_revision", dataset.update_revision, kMaxNameBytes);
  object.ForEach("passes", kMaxPassReports,
                 [&](JsonObject item) { Read(std::move(item), dataset.passes.emplace_back()); });
  object.In("store", [&](JsonObject store) { Read(std::move(store), dataset.store); });
}

}  // namespace

std::string ToJson(const ClusterStatus& status) {
  return internal::Dump(
      {{"version", FormatVersion(status.version)},
       {"members", Array(status.members, [](const MemberStatus& m) { return Encode(m); })},
       {"sidecars", Array(status.sidecars, [](const SidecarStatus& s) { return Encode(s); })},
       {"datasets", Array(status.datasets, [](const DatasetStatus& d) { return Encode(d); })},
       {"retiring", Array(status.retiring, [](const DatasetStatus& d) { return Encode(d); })}});
}

Result<ClusterStatus> ParseClusterStatus(std::string_view json) {
  ASSIGN_OR_RETURN(const nlohmann::json document, internal::ParseJson(json, kMaxStateBytes));
  JsonErrors errors;
  JsonObject object(document, "", errors);
  ClusterStatus status;
  Read(object, "version", status.version);
  object.ForEach("members", kMaxMembers,
                 [&](JsonObject item) { Read(std::move(item), status.members.emplace_back()); });
  object.ForEach("sidecars", kMaxMembers,
                 [&](JsonObject item) { Read(std::move(item), status.sidecars.emplace_back()); });
  object.ForEach("datasets", kMaxDatasets,
                 [&](JsonObject item) { Read(std::move(item), status.datasets.emplace_back()); });
  object.ForEach("retiring", kMaxRetiring,
                 [&](JsonObject item) { Read(std::move(item), status.retiring.emplace_back()); });
  RETURN_IF_ERROR(errors.status());
  return status;
}

}  // namespace optcache::coordination
