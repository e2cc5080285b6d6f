#include "coordination/internal/json_values.h"

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

Json Encode(const DatasetReport& dataset) {
  return {{"name", dataset.name},
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
          {"predicted_hit_ratio", dataset.predicted_hit_ratio},
          {"manifest", dataset.manifest_digest},
          {"total_samples", dataset.total_samples},
          {"total_bytes", dataset.total_bytes}};
}

void Read(JsonObject object, DatasetReport& dataset) {
  object.Need("name", dataset.name, kMaxNameBytes);
  object.Read("plan", dataset.plan, kMaxNameBytes);
  object.Read("plan_digest", dataset.plan_digest, kMaxNameBytes);
  object.Read("used_bytes", dataset.used_bytes);
  object.Read("samples", dataset.samples);
  object.Read("hits", dataset.hits);
  object.Read("peer_hits", dataset.peer_hits);
  object.Read("misses", dataset.misses);
  object.Read("miss_bytes", dataset.miss_bytes);
  object.Read("moves", dataset.moves);
  object.Read("moved_bytes", dataset.moved_bytes);
  object.Read("planned_misses", dataset.planned_misses);
  object.Read("predicted_hit_ratio", dataset.predicted_hit_ratio);
  object.Read("manifest", dataset.manifest_digest, kMaxNameBytes);
  object.Read("total_samples", dataset.total_samples);
  object.Read("total_bytes", dataset.total_bytes);
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
