// Writes and reads the values that reports, states and the status share, by a pair of functions
// each.
//
// Encode and Read of one value name the same fields. Encode leaves out what few values use while it
// is at its default. Read takes a missing field for the default, and reports a name of an
// enumeration that it does not know together with those that it does. Dump replaces what is not
// UTF-8, because texts such as names come from outside.

#include "coordination/internal/json_values.h"

#include <algorithm>

namespace optcache::coordination::internal {
namespace {

// Sets `out` to the one of `values` whose name the field holds.
template <typename Enum, std::size_t n>
void ReadName(JsonObject& object, const char* name, const std::array<Enum, n>& values,
              std::string_view (*name_of)(Enum), Enum& out) {
  std::string text;
  object.Read(name, text, kMaxNameBytes);
  if (text.empty()) return;
  std::string allowed;
  for (const Enum value : values) {
    if (name_of(value) == text) {
      out = value;
      return;
    }
    allowed += (allowed.empty() ? "" : ", ") + std::string(name_of(value));
  }
  object.errors().Add(object.PathOf(name), "\"" + text + "\" is not known, allowed: " + allowed);
}

}  // namespace

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Hex(std::uint64_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t i = text.size(); i-- > 0; value >>= 4U)
    text[i] = kDigits[value & 15U];
  return text;
}

Json Encode(const PassReport& pass) {
  return {{"stream", Hex(pass.stream)},
          {"pass", pass.pass},
          {"hits", pass.hits},
          {"peer_hits", pass.peer_hits},
          {"misses", pass.misses},
          {"miss_bytes", pass.miss_bytes},
          {"moved_bytes", pass.moved_bytes},
          {"planned_reads", pass.planned_reads},
          {"planned_misses", pass.planned_misses},
          {"planned_miss_bytes", pass.planned_miss_bytes},
          {"planned_moved_bytes", pass.planned_moved_bytes}};
}

void Read(JsonObject& object, PassReport& pass) {
  object.ReadHex("stream", pass.stream);
  object.Read("pass", pass.pass);
  object.Read("hits", pass.hits);
  object.Read("peer_hits", pass.peer_hits);
  object.Read("misses", pass.misses);
  object.Read("miss_bytes", pass.miss_bytes);
  object.Read("moved_bytes", pass.moved_bytes);
  object.Read("planned_reads", pass.planned_reads);
  object.Read("planned_misses", pass.planned_misses);
  object.Read("planned_miss_bytes", pass.planned_miss_bytes);
  object.Read("planned_moved_bytes", pass.planned_moved_bytes);
}

Json Encode(const Savings& savings) {
  return {{"requests", savings.requests}, {"bytes", savings.bytes}, {"wait_us", savings.wait_us}};
}

void Read(JsonObject& object, Savings& savings) {
  object.Read("requests", savings.requests);
  object.Read("bytes", savings.bytes);
  object.Read("wait_us", savings.wait_us);
  if (IsWithinLimits(savings)) return;
  object.errors().Add(object.PathOf("requests"), "it, bytes or wait_us is beyond 2^61");
}

Json Encode(const Forecast& forecast) {
  return {{"reads", forecast.reads},
          {"store_reads", forecast.store_reads},
          {"read_bytes", forecast.read_bytes},
          {"store_bytes", forecast.store_bytes},
          {"moved_bytes", forecast.moved_bytes}};
}

void Read(JsonObject object, Forecast& forecast) {
  object.Read("reads", forecast.reads);
  object.Read("store_reads", forecast.store_reads);
  object.Read("read_bytes", forecast.read_bytes);
  object.Read("store_bytes", forecast.store_bytes);
  object.Read("moved_bytes", forecast.moved_bytes);
}

Json Encode(const TrialReport& trial) {
  Json json = {{"id", trial.id}, {"planned", FormatVersion(trial.planned)}};
  if (!trial.error.empty()) {
    json["error"] = trial.error;
    return json;
  }
  json["digest"] = trial.digest;
  json["all"] = Encode(trial.all);
  json["own"] = Encode(trial.own);
  return json;
}

void Read(JsonObject object, TrialReport& trial) {
  object.Need("id", trial.id, kMaxNameBytes);
  Read(object, "planned", trial.planned);
  object.Read("digest", trial.digest, kMaxNameBytes);
  object.Read("error", trial.error, kMaxNameBytes);
  object.In("all", [&](JsonObject all) { Read(std::move(all), trial.all); });
  object.In("own", [&](JsonObject own) { Read(std::move(own), trial.own); });
}

Json Encode(const StoreReport& store) {
  Json json = {{"answering", store.answering}};
  if (!store.changed.empty()) json["changed"] = store.changed;
  if (store.silent == 0) return json;
  json["silent"] = store.silent;
  json["silent_ms"] = store.silent_ms;
  json["cause"] = store.cause;
  return json;
}

Json Encode(const DatasetReport& dataset) {
  Json json = {{"name", dataset.name},
               {"plan", dataset.plan},
               {"plan_digest", dataset.plan_digest},
               {"used_bytes", dataset.used_bytes},
               {"samples", dataset.samples},
               {"hits", dataset.hits},
               {"peer_hits", dataset.peer_hits},
               {"misses", dataset.misses},
               {"miss_bytes", dataset.miss_bytes},
               {"moves", dataset.moves},
               {"moved_bytes", dataset.moved_bytes},
               {"planned_misses", dataset.planned_misses},
               {"covered_reads", dataset.covered_reads},
               {"covered_hits", dataset.covered_hits},
               {"predicted_hit_ratio", dataset.predicted_hit_ratio},
               {"manifest", dataset.manifest_digest},
               {"total_samples", dataset.total_samples},
               {"total_bytes", dataset.total_bytes}};
  if (dataset.disk_used_bytes > 0) json["disk_used_bytes"] = dataset.disk_used_bytes;
  if (!dataset.revision.empty()) json["revision"] = dataset.revision;
  if (dataset.derived != Version{}) json["derived"] = FormatVersion(dataset.derived);
  if (!dataset.passes.empty())
    json["passes"] = Array(dataset.passes, [](const PassReport& pass) { return Encode(pass); });
  if (!dataset.trials.empty())
    json["trials"] = Array(dataset.trials, [](const TrialReport& trial) { return Encode(trial); });
  if (dataset.store != StoreReport{}) json["store"] = Encode(dataset.store);
  return json;
}

void Read(JsonObject object, StoreReport& store) {
  object.Read("answering", store.answering);
  object.Read("silent", store.silent);
  object.Read("silent_ms", store.silent_ms);
  object.Read("cause", store.cause, kMaxCauseBytes);
  object.Read("changed", store.changed, kMaxCauseBytes);
  store.silent_ms = std::min(store.silent_ms, kMaxSilentMs);
}

void Read(JsonObject object, DatasetReport& dataset) {
  object.Need("name", dataset.name, kMaxNameBytes);
  object.Read("plan", dataset.plan, kMaxNameBytes);
  object.Read("plan_digest", dataset.plan_digest, kMaxNameBytes);
  object.Read("used_bytes", dataset.used_bytes);
  object.Read("disk_used_bytes", dataset.disk_used_bytes);
  object.Read("samples", dataset.samples);
  object.Read("hits", dataset.hits);
  object.Read("peer_hits", dataset.peer_hits);
  object.Read("misses", dataset.misses);
  object.Read("miss_bytes", dataset.miss_bytes);
  object.Read("moves", dataset.moves);
  object.Read("moved_bytes", dataset.moved_bytes);
  object.Read("planned_misses", dataset.planned_misses);
  object.Read("covered_reads", dataset.covered_reads);
  object.Read("covered_hits", dataset.covered_hits);
  object.Read("predicted_hit_ratio", dataset.predicted_hit_ratio);
  object.Read("manifest", dataset.manifest_digest, kMaxNameBytes);
  object.Read("total_samples", dataset.total_samples);
  object.Read("total_bytes", dataset.total_bytes);
  object.Read("revision", dataset.revision, kMaxNameBytes);
  Read(object, "derived", dataset.derived);
  object.ForEach("passes", kMaxPassReports,
                 [&](JsonObject item) { Read(item, dataset.passes.emplace_back()); });
  object.ForEach("trials", kMaxTrials,
                 [&](JsonObject item) { Read(std::move(item), dataset.trials.emplace_back()); });
  object.In("store", [&](JsonObject store) { Read(std::move(store), dataset.store); });
}

void Read(JsonObject& object, const char* name, Version& version) {
  std::string text;
  object.Read(name, text, kMaxNameBytes);
  if (text.empty()) return;
  const Result<Version> parsed = ParseVersion(text);
  if (!parsed) return object.errors().Add(object.PathOf(name), parsed.error().message());
  version = *parsed;
}

void Read(JsonObject& object, const char* name, Retention& retention) {
  ReadName(object, name,
           std::array{Retention::kOptimal, Retention::kPin, Retention::kLru, Retention::kNone},
           RetentionName, retention);
}

void Read(JsonObject& object, const char* name, Objective& objective) {
  ReadName(object, name, std::array{Objective::kBytes, Objective::kRequests}, ObjectiveName,
           objective);
}

}  // namespace optcache::coordination::internal
