// Writes the control API's values as JSON. codec_decode.cc reads them, field for field.
//
// The idea: an older part ignores fields that it does not know, and a newer part takes a missing
// field for its default. What a part that does not know a field sees must stay true: a recipe whose
// order only `order` can say is written as not known. Fields that few values use are written only
// where they differ from the default. Numbers of 64 bits that are names are written as hexadecimal
// digits, because other languages round them.

#include "base/base64.h"
#include "coordination/codec.h"
#include "coordination/internal/json_values.h"
#include "coordination/sample_set.h"

namespace optcache::coordination {
namespace {

using internal::Array;
using internal::Dump;
using internal::Encode;
using internal::Hex;
using internal::Json;

// Who does not know `order` takes the order for unknown.
Json Encode(const Recipe& recipe) {
  Json json = {{"sampler", recipe.sampler_kind},
               {"size", recipe.size},
               {"seed", recipe.seed},
               {"world", recipe.world},
               {"shuffle", recipe.shuffle},
               {"drop_last", recipe.drop_last},
               {"modern_randperm", recipe.modern_randperm},
               {"base_seed", recipe.base_seed},
               {"tail_permutation", recipe.tail_permutation},
               {"known", recipe.known && recipe.order.empty()},
               {"passes", recipe.passes}};
  if (recipe.known && !recipe.order.empty()) json["order"] = recipe.order;
  return json;
}

Json Encode(const Cut& cut) {
  return {{"pass", cut.pass}, {"position", cut.position}};
}

Json Encode(const std::vector<PassTrace>& traces) {
  return Array(traces, [](const PassTrace& trace) -> Json {
    return {{"pass", trace.pass}, {"length", trace.length}, {"digest", trace.digest}};
  });
}

Json Encode(const RankReport& rank) {
  Json json = {{"rank", rank.rank},         {"recipe", Encode(rank.recipe)},
               {"started", rank.started},   {"pass", rank.pass},
               {"epoch", rank.epoch},       {"start", rank.start},
               {"position", rank.position}, {"last_pass_end", rank.last_pass_end},
               {"wait_us", rank.wait_us},   {"order_known", rank.order_known},
               {"ended", rank.ended}};
  if (!rank.traces.empty()) json["traces"] = Encode(rank.traces);
  if (rank.pass_reads != 0) json["pass_reads"] = rank.pass_reads;
  return json;
}

Json Encode(const StreamReport& stream) {
  return {{"id", Hex(stream.id)},
          {"name", stream.name},
          {"incarnation", stream.incarnation},
          {"dataset", stream.dataset},
          {"dataset_key", Hex(stream.dataset_key)},
          {"ranks", Array(stream.ranks, [](const RankReport& rank) { return Encode(rank); })}};
}

Json Encode(const StreamState& stream) {
  Json json = {{"id", Hex(stream.id)},
               {"name", stream.name},
               {"incarnation", stream.incarnation},
               {"recipe", Encode(stream.recipe)},
               {"rate_permille", stream.rate_permille},
               {"node_of_rank", stream.node_of_rank},
               {"complete", stream.complete},
               {"conflict", stream.conflict},
               {"first_pass", stream.first_pass},
               {"first_epoch", stream.first_epoch},
               {"epoch_step", stream.epoch_step},
               {"cut", Encode(stream.cut)}};
  if (!stream.traces.empty()) json["traces"] = Encode(stream.traces);
  if (stream.stops_at != 0) json["stops_at"] = stream.stops_at;
  if (stream.generation != Version{}) json["generation"] = FormatVersion(stream.generation);
  return json;
}

// Into a revision of its own, or among the fields of a dataset that follows it.
Json Encode(const RevisionState& revision) {
  Json json = {{"revision", revision.name},
               {"retention", RetentionName(revision.retention)},
               {"objective", ObjectiveName(revision.objective)}};
  if (!revision.recipes.empty()) {
    json["recipes"] = Array(revision.recipes, [](const StreamRecipe& recipe) -> Json {
      return {{"stream", Hex(recipe.stream)}, {"recipe", Encode(recipe.recipe)}};
    });
  }
  return json;
}

Json Encode(const UpdateState& update) {
  Json json = Encode(update.revision);
  json["members"] = update.members;
  return json;
}

Json Encode(const TrialState& trial) {
  Json json = Encode(trial.revision);
  json["id"] = trial.id;
  if (!trial.expected.empty())
    json["expected"] = Array(trial.expected, [](const StreamState& s) { return Encode(s); });
  return json;
}

Json Encode(const MemberCapacity& capacity) {
  Json json = {{"member", capacity.member}, {"bytes", capacity.bytes}};
  if (capacity.disk > 0) json["disk"] = capacity.disk;
  if (capacity.departs) json["departs"] = true;
  return json;
}

Json Encode(const DatasetState& dataset) {
  Json json = {
      {"name", dataset.name},
      {"manifest", dataset.manifest_digest},
      {"key", Hex(dataset.key)},
      {"retention", RetentionName(dataset.retention)},
      {"objective", ObjectiveName(dataset.objective)},
      {"planned", FormatVersion(dataset.planned)},
      {"base", dataset.base_digest},
      {"capacities", Array(dataset.capacities, [](const MemberCapacity& c) { return Encode(c); })},
      {"streams", Array(dataset.streams, [](const StreamState& s) { return Encode(s); })},
      {"inventory_wanted", dataset.inventory_wanted},
      {"namespaces", dataset.namespaces},
      {"manifest_members", dataset.manifest_members},
      {"manifest_holders", dataset.manifest_holders}};
  if (!dataset.revision.empty()) json["revision"] = dataset.revision;
  if (dataset.update) json["update"] = Encode(*dataset.update);
  if (!dataset.trials.empty())
    json["trials"] = Array(dataset.trials, [](const TrialState& trial) { return Encode(trial); });
  return json;
}

Json Encode(const Member& member) {
  Json json = {{"id", member.id},
               {"name", member.name},
               {"address", member.address},
               {"capacity", member.capacity},
               {"manifest_url", member.manifest_url}};
  if (member.disk > 0) json["disk"] = member.disk;
  if (member.leaving) json["leaving"] = true;
  return json;
}

Json Encode(const SavingsBatch& batch) {
  return {{"number", batch.number},
          {"datasets", Array(batch.datasets, [](const DatasetSavings& of) {
             Json json = Encode(of.saved);
             json["name"] = of.dataset;
             return json;
           })}};
}

Json Encode(const RateDemand& demand) {
  return {{"askers", demand.askers}, {"wanted", demand.wanted}, {"held_back", demand.held_back}};
}

Json Encode(const DatasetDemand& demand) {
  return {{"dataset", demand.dataset},
          {"requests", Encode(demand.requests)},
          {"bytes", Encode(demand.bytes)}};
}

Json Encode(const DatasetShare& share) {
  return {{"dataset", share.dataset}, {"requests", share.requests}, {"bytes", share.bytes}};
}

}  // namespace

std::string ToJson(const Report& report) {
  Json json = {
      {"node", report.node},
      {"incarnation", report.incarnation},
      {"address", report.address},
      {"metrics", report.metrics},
      {"capacity", report.capacity},
      {"member", report.member},
      {"applied", FormatVersion(report.applied)},
      {"manifest_url", report.manifest_url},
      {"manifests", report.manifests},
      {"datasets", Array(report.datasets, [](const DatasetReport& d) { return Encode(d); })},
      {"retiring", Array(report.retiring, [](const DatasetReport& d) { return Encode(d); })},
      {"streams", Array(report.streams, [](const StreamReport& s) { return Encode(s); })}};
  if (report.disk > 0) json["disk"] = report.disk;
  if (report.leaving) json["leaving"] = true;
  if (report.savings != SavingsBatch{}) json["savings"] = Encode(report.savings);
  if (!report.demands.empty())
    json["demands"] = Array(report.demands, [](const DatasetDemand& d) { return Encode(d); });
  return Dump(json);
}

std::string ToJson(const ReportAnswer& answer) {
  Json json = {{"member", answer.member}, {"version", FormatVersion(answer.version)}};
  if (!answer.traces_wanted.empty()) json["traces_wanted"] = answer.traces_wanted;
  if (!answer.shares.empty())
    json["shares"] = Array(answer.shares, [](const DatasetShare& s) { return Encode(s); });
  return Dump(json);
}

std::string ToJson(const Inventory& inventory) {
  return Dump({{"node", inventory.node},
               {"incarnation", inventory.incarnation},
               {"dataset", inventory.dataset},
               {"request", inventory.request},
               {"held", EncodeBase64(EncodeSampleSet(inventory.ids))},
               {"positions", Array(inventory.positions, [](const RankPosition& position) -> Json {
                  return {{"stream", Hex(position.stream)},
                          {"rank", position.rank},
                          {"pass", position.next.pass},
                          {"position", position.next.position},
                          {"planned", position.planned}};
                })}});
}

std::string ToJson(const DesiredState& state) {
  return Dump(
      {{"version", FormatVersion(state.version)},
       {"members", Array(state.members, [](const Member& m) { return Encode(m); })},
       {"datasets", Array(state.datasets, [](const DatasetState& d) { return Encode(d); })},
       {"retiring", Array(state.retiring, [](const DatasetState& d) { return Encode(d); })}});
}

}  // namespace optcache::coordination
