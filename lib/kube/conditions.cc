#include "kube/conditions.h"

#include <algorithm>

#include "base/time_text.h"
#include "base/utf8.h"

namespace optcache::kube {
namespace {

constexpr std::size_t kMaxConditionReasonBytes = 1024;
constexpr std::size_t kMaxMessageBytes = 32'768;

ConditionStatus StatusFrom(std::string_view text) {
  if (text == "True") return ConditionStatus::kTrue;
  return text == "False" ? ConditionStatus::kFalse : ConditionStatus::kUnknown;
}

}  // namespace

std::string_view ToText(ConditionStatus status) {
  switch (status) {
    case ConditionStatus::kTrue:
      return "True";
    case ConditionStatus::kFalse:
      return "False";
    case ConditionStatus::kUnknown:
      break;
  }
  return "Unknown";
}

void SetCondition(Json& conditions, const Condition& condition, double unix_seconds) {
  if (!conditions.is_array()) conditions = Json::array();
  const auto same_type = [&](const Json& entry) {
    return TextAt(entry, "/type") == condition.type;
  };
  auto found = std::find_if(conditions.begin(), conditions.end(), same_type);
  if (found == conditions.end()) {
    conditions.push_back(Json::object());
    found = std::prev(conditions.end());
  }
  const std::string since = TextAt(*found, "/lastTransitionTime");
  const bool flipped = since.empty() || TextAt(*found, "/status") != ToText(condition.status);
  *found = {{"type", condition.type},
            {"status", ToText(condition.status)},
            {"reason", CutText(condition.reason, kMaxConditionReasonBytes)},
            {"message", CutText(condition.message, kMaxMessageBytes)},
            {"observedGeneration", condition.observed_generation},
            {"lastTransitionTime", flipped ? FormatTime(unix_seconds) : since}};
}

Condition ConditionOf(const Json& object, std::string_view type) {
  for (const Json& entry : Items(object, "/status/conditions")) {
    if (TextAt(entry, "/type") != type) continue;
    return {.type = std::string(type),
            .status = StatusFrom(TextAt(entry, "/status")),
            .reason = TextAt(entry, "/reason"),
            .message = TextAt(entry, "/message"),
            .observed_generation = NumberAt(entry, "/observedGeneration").value_or(0)};
  }
  return {.type = std::string(type)};
}

}  // namespace optcache::kube
