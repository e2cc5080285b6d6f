// Reads the JSON of the control API. codec_encode.cc writes it, field for field.
//
// The idea: the text comes from outside and is not trusted. ParseJson looks at no text beyond its
// limit, each list and string has a limit of its own, and numbers must fit their type. A value that
// is well formed but makes no sense beside another field is an error too: a rank beyond its world,
// or a list of nodes that is not as long as the world. The first error is kept in JsonErrors with
// the path of its field, and ends the loops; so the functions here only name fields.

#include <algorithm>
#include <utility>

#include "coordination/codec.h"
#include "coordination/internal/json_values.h"
#include "coordination/sample_set.h"
#include "coordination/stream_recipe.h"
#include "sampler/recipe_text.h"

namespace optcache::coordination {
namespace {

using internal::JsonErrors;
using internal::JsonObject;
using internal::Read;

void Read(JsonObject object, Recipe& recipe) {
  object.Read("sampler", recipe.sampler_kind);
  object.Read("size", recipe.size);
  object.Read("seed", recipe.seed);
  object.Read("world", recipe.world);
  object.Read("shuffle", recipe.shuffle);
  object.Read("drop_last", recipe.drop_last);
  object.Read("modern_randperm", recipe.modern_randperm);
  object.Read("base_seed", recipe.base_seed);
  object.Read("tail_permutation", recipe.tail_permutation);
  object.Read("known", recipe.known);
  object.Read("passes", recipe.passes);
  std::string order;
  object.Read("order", order, sampler::kMaxRecipeBytes);
  TakeOrder(order, recipe);  // one that is newer than this part: not known
  if (recipe.world == 0 || recipe.world > kMaxWorld) {
    object.errors().Add(object.PathOf("world"), std::to_string(recipe.world) + ", allowed: 1 to " +
                                                    std::to_string(kMaxWorld));
  }
}

void Read(JsonObject object, Cut& cut) {
  object.Read("pass", cut.pass);
  object.Read("position", cut.position);
}

void ReadTraces(JsonObject& object, std::vector<PassTrace>& traces) {
  object.ForEach("traces", kMaxTraces, [&](JsonObject item) {
    PassTrace& trace = traces.emplace_back();
    item.Read("pass", trace.pass);
    item.Read("length", trace.length);
    item.Need("digest", trace.digest, kMaxNameBytes);
    if (traces.size() > 1 && trace.pass <= traces[traces.size() - 2].pass) {
      item.errors().Add(item.PathOf("pass"), "passes do not ascend");
    }
  });
}

void Read(JsonObject object, RankReport& rank) {
  object.Read("rank", rank.rank);
  object.In("recipe", [&](JsonObject recipe) { Read(std::move(recipe), rank.recipe); });
  object.Read("started", rank.started);
  object.Read("pass", rank.pass);
  object.Read("epoch", rank.epoch);
  object.Read("start", rank.start);
  object.Read("position", rank.position);
  object.Read("last_pass_end", rank.last_pass_end);
  object.Read("wait_us", rank.wait_us);
  object.Read("order_known", rank.order_known);
  object.Read("ended", rank.ended);
  ReadTraces(object, rank.traces);
  object.Read("pass_reads", rank.pass_reads);
  if (rank.rank >= rank.recipe.world) {
    object.errors().Add(object.PathOf("rank"), std::to_string(rank.rank) +
                                                   " is not below the world size " +
                                                   std::to_string(rank.recipe.world));
  }
}

void Read(JsonObject object, StreamReport& stream) {
  object.ReadHex("id", stream.id);
  object.Need("name", stream.name, kMaxNameBytes);
  object.Read("incarnation", stream.incarnation);
  object.Need("dataset", stream.dataset, kMaxNameBytes);
  object.ReadHex("dataset_key", stream.dataset_key);
  object.ForEach("ranks", kMaxWorld,
                 [&](JsonObject item) { Read(std::move(item), stream.ranks.emplace_back()); });
  if (stream.id == 0) object.errors().Add(object.PathOf("id"), "missing or 0");
}

void Read(JsonObject object, StreamState& stream) {
  object.ReadHex("id", stream.id);
  object.Need("name", stream.name, kMaxNameBytes);
  object.Read("incarnation", stream.incarnation);
  object.In("recipe", [&](JsonObject recipe) { Read(std::move(recipe), stream.recipe); });
  object.Read("rate_permille", stream.rate_permille);
  object.Read("node_of_rank", kMaxWorld, stream.node_of_rank);
  object.Read("complete", stream.complete);
  object.Read("conflict", stream.conflict, kMaxNameBytes);
  object.Read("first_pass", stream.first_pass);
  object.Read("first_epoch", stream.first_epoch);
  object.Read("epoch_step", stream.epoch_step);
  object.In("cut", [&](JsonObject cut) { Read(std::move(cut), stream.cut); });
  ReadTraces(object, stream.traces);
  object.Read("stops_at", stream.stops_at);
  Read(object, "generation", stream.generation);
  if (stream.node_of_rank.size() != stream.recipe.world) {
    object.errors().Add(object.PathOf("node_of_rank"), std::to_string(stream.node_of_rank.size()) +
                                                           " items for a world size of " +
                                                           std::to_string(stream.recipe.world));
  }
}

void Read(JsonObject& object, RevisionState& revision) {
  object.Read("revision", revision.name, kMaxNameBytes);
  Read(object, "retention", revision.retention);
  Read(object, "objective", revision.objective);
  object.ForEach("recipes", kMaxStreams, [&](JsonObject item) {
    StreamRecipe& recipe = revision.recipes.emplace_back();
    item.ReadHex("stream", recipe.stream);
    item.In("recipe", [&](JsonObject fields) { Read(std::move(fields), recipe.recipe); });
  });
}

void Read(JsonObject object, TrialState& trial) {
  object.Need("id", trial.id, kMaxNameBytes);
  Read(object, trial.revision);
  object.ForEach("expected", kMaxJobsOfPlan,
                 [&](JsonObject item) { Read(std::move(item), trial.expected.emplace_back()); });
}

void Read(JsonObject object, DatasetState& dataset) {
  object.Need("name", dataset.name, kMaxNameBytes);
  object.Need("manifest", dataset.manifest_digest, kMaxNameBytes);
  object.ReadHex("key", dataset.key);
  Read(object, "retention", dataset.retention);
  Read(object, "objective", dataset.objective);
  Read(object, "planned", dataset.planned);
  object.Read("base", dataset.base_digest, kMaxNameBytes);
  object.ForEach("capacities", kMaxMembers, [&](JsonObject item) {
    MemberCapacity& capacity = dataset.capacities.emplace_back();
    item.Read("member", capacity.member);
    item.Read("bytes", capacity.bytes);
    item.Read("disk", capacity.disk);
    item.Read("departs", capacity.departs);
    capacity.disk = std::min(capacity.disk, capacity.bytes);
  });
  object.ForEach("streams", kMaxStreams,
                 [&](JsonObject item) { Read(std::move(item), dataset.streams.emplace_back()); });
  object.Read("inventory_wanted", dataset.inventory_wanted);
  object.Read("namespaces", kMaxNamespaces, dataset.namespaces);
  object.Read("manifest_members", kMaxMembers, dataset.manifest_members);
  object.Read("manifest_holders", kMaxMembers, dataset.manifest_holders);
  object.Read("revision", dataset.revision, kMaxNameBytes);
  object.In("update", [&](JsonObject update) {
    dataset.update.emplace();
    Read(update, dataset.update->revision);
    update.Read("members", kMaxMembers, dataset.update->members);
  });
  object.ForEach("trials", kMaxTrials,
                 [&](JsonObject item) { Read(std::move(item), dataset.trials.emplace_back()); });
}

void Read(JsonObject object, Member& member) {
  object.Read("id", member.id);
  object.Need("name", member.name, kMaxNameBytes);
  object.Need("address", member.address, kMaxNameBytes);
  object.Read("capacity", member.capacity);
  object.Read("disk", member.disk);
  object.Read("leaving", member.leaving);
  object.Read("manifest_url", member.manifest_url, kMaxNameBytes);
  if (member.id == 0) object.errors().Add(object.PathOf("id"), "missing or 0");
}

void Read(JsonObject object, SavingsBatch& batch) {
  object.Read("number", batch.number);
  object.ForEach("datasets", kMaxDatasets, [&](JsonObject item) {
    DatasetSavings& of = batch.datasets.emplace_back();
    item.Need("name", of.dataset, kMaxNameBytes);
    Read(item, of.saved);
  });
}

// A rate is no number of which sums and parts go wrong.
void ReadRate(JsonObject& object, const char* name, double& rate) {
  constexpr double kMost = 0x1p63;
  object.Read(name, rate);
  rate = std::clamp(rate, 0.0, kMost);
}

void Read(JsonObject object, RateDemand& demand) {
  object.Read("askers", demand.askers);
  ReadRate(object, "wanted", demand.wanted);
  object.Read("held_back", demand.held_back);
}

void Read(JsonObject object, DatasetDemand& demand) {
  object.Need("dataset", demand.dataset, kMaxNameBytes);
  object.In("requests", [&](JsonObject fields) { Read(std::move(fields), demand.requests); });
  object.In("bytes", [&](JsonObject fields) { Read(std::move(fields), demand.bytes); });
}

void Read(JsonObject object, DatasetShare& share) {
  object.Need("dataset", share.dataset, kMaxNameBytes);
  ReadRate(object, "requests", share.requests);
  ReadRate(object, "bytes", share.bytes);
}

}  // namespace

Result<Report> ParseReport(std::string_view json) {
  ASSIGN_OR_RETURN(const nlohmann::json document, internal::ParseJson(json, kMaxReportBytes));
  JsonErrors errors;
  JsonObject object(document, "", errors);
  Report report;
  object.Need("node", report.node, kMaxNameBytes);
  object.Read("incarnation", report.incarnation);
  object.Need("address", report.address, kMaxNameBytes);
  object.Read("metrics", report.metrics, kMaxNameBytes);
  object.Read("capacity", report.capacity);
  object.Read("disk", report.disk);
  object.Read("leaving", report.leaving);
  object.Read("member", report.member);
  Read(object, "applied", report.applied);
  object.Read("manifest_url", report.manifest_url, kMaxNameBytes);
  object.Read("manifests", kMaxManifests, report.manifests);
  object.ForEach("datasets", kMaxDatasets,
                 [&](JsonObject item) { Read(std::move(item), report.datasets.emplace_back()); });
  object.ForEach("retiring", kMaxRetiring,
                 [&](JsonObject item) { Read(std::move(item), report.retiring.emplace_back()); });
  object.ForEach("streams", kMaxStreams,
                 [&](JsonObject item) { Read(std::move(item), report.streams.emplace_back()); });
  object.In("savings", [&](JsonObject savings) { Read(std::move(savings), report.savings); });
  object.ForEach("demands", kMaxDatasets,
                 [&](JsonObject item) { Read(std::move(item), report.demands.emplace_back()); });
  RETURN_IF_ERROR(errors.status());
  return report;
}

Result<ReportAnswer> ParseReportAnswer(std::string_view json) {
  ASSIGN_OR_RETURN(const nlohmann::json document, internal::ParseJson(json, kMaxReportBytes));
  JsonErrors errors;
  JsonObject object(document, "", errors);
  ReportAnswer answer;
  object.Read("member", answer.member);
  Read(object, "version", answer.version);
  object.Read("traces_wanted", kMaxTracesWanted, answer.traces_wanted);
  object.ForEach("shares", kMaxDatasets,
                 [&](JsonObject item) { Read(std::move(item), answer.shares.emplace_back()); });
  RETURN_IF_ERROR(errors.status());
  return answer;
}

Result<Inventory> ParseInventory(std::string_view json) {
  ASSIGN_OR_RETURN(const nlohmann::json document, internal::ParseJson(json, kMaxInventoryBytes));
  JsonErrors errors;
  JsonObject object(document, "", errors);
  Inventory inventory;
  object.Need("node", inventory.node, kMaxNameBytes);
  object.Read("incarnation", inventory.incarnation);
  object.Need("dataset", inventory.dataset, kMaxNameBytes);
  object.Read("request", inventory.request);
  std::string held;
  object.ReadBytes("held", held);
  object.ForEach("positions", kMaxStreams * kMaxWorld, [&](JsonObject item) {
    RankPosition& position = inventory.positions.emplace_back();
    item.ReadHex("stream", position.stream);
    item.Read("rank", position.rank);
    item.Read("pass", position.next.pass);
    item.Read("position", position.next.position);
    item.Read("planned", position.planned);
  });
  RETURN_IF_ERROR(errors.status());
  Result<std::vector<SampleId>> ids = DecodeSampleSet(held);
  if (!ids) return Error(std::move(ids).error().WithContext("held"));
  inventory.ids = *std::move(ids);
  return inventory;
}

Result<DesiredState> ParseDesiredState(std::string_view json) {
  ASSIGN_OR_RETURN(const nlohmann::json document, internal::ParseJson(json, kMaxStateBytes));
  JsonErrors errors;
  JsonObject object(document, "", errors);
  DesiredState state;
  Read(object, "version", state.version);
  object.ForEach("members", kMaxMembers,
                 [&](JsonObject item) { Read(std::move(item), state.members.emplace_back()); });
  object.ForEach("datasets", kMaxDatasets,
                 [&](JsonObject item) { Read(std::move(item), state.datasets.emplace_back()); });
  object.ForEach("retiring", kMaxRetiring,
                 [&](JsonObject item) { Read(std::move(item), state.retiring.emplace_back()); });
  RETURN_IF_ERROR(errors.status());
  return state;
}

}  // namespace optcache::coordination
